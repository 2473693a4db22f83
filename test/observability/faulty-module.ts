/* Loaded into the service beside its own modules: makes the faults that its own code must not have. */

process.on('SIGUSR2', () => {
  void Promise.reject(new Error('rejected for the test'))
})

process.on('SIGWINCH', () => {
  throw new Error('thrown for the test')
})
