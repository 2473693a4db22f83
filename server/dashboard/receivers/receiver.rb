require 'json'
require 'openssl'
require 'set'
require 'webrick'

secret = ENV['WEBHOOK_SECRET'].to_s
abort 'Set WEBHOOK_SECRET to the secret of the webhook: whsec_…' if secret.empty?
key = secret.delete_prefix('whsec_').unpack1('m')
seen = Set.new
lock = Mutex.new
events = Queue.new
$stdout.sync = true

genuine = lambda do |request, body|
  id, timestamp = request['webhook-id'].to_s, request['webhook-timestamp'].to_s
  next false unless timestamp.match?(/\A\d+\z/) && (Time.now.to_i - timestamp.to_i).abs <= 300

  mac = OpenSSL::HMAC.digest('SHA256', key, "#{id}.#{timestamp}.".b + body)
  expected = "v1,#{[mac].pack('m0')}"
  request['webhook-signature'].to_s.split.any? { |signature| OpenSSL.secure_compare(signature, expected) }
end

def handle(event)
  puts event
end

Thread.new { loop { handle(JSON.parse(events.pop)) } }

server = WEBrick::HTTPServer.new(BindAddress: '127.0.0.1', Port: Integer(ENV.fetch('PORT', '4000')), AccessLog: [])
server.mount_proc('/') do |request, response|
  body = request.body.to_s.b
  response.status = genuine.call(request, body) ? 200 : 401
  events << body if response.status == 200 && lock.synchronize { seen.add?(request['webhook-id']) }
end
trap('INT') { server.shutdown }
server.start
