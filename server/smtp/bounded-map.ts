/** A map that forgets what was set first when there is no room for more. */
export class BoundedMap<K, V> {
  readonly #max: number
  readonly #entries = new Map<K, V>()

  constructor(max: number) {
    this.#max = max
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)
  }

  set(key: K, value: V): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size <= this.#max) return
    const [first] = this.#entries.keys()
    if (first !== undefined) this.#entries.delete(first)
  }

  delete(key: K): void {
    this.#entries.delete(key)
  }
}
