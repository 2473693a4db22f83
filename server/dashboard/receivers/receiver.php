<?php
$secret = getenv('WEBHOOK_SECRET') ?: throw new RuntimeException('Set WEBHOOK_SECRET to the secret of the webhook: whsec_…');
$key = base64_decode(substr($secret, strlen('whsec_')));

function is_genuine(array $headers, string $body, string $key): bool
{
    $id = $headers['webhook-id'] ?? '';
    $timestamp = $headers['webhook-timestamp'] ?? '';
    if (!ctype_digit($timestamp) || abs(time() - (int) $timestamp) > 300) {
        return false;
    }
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $headers['webhook-signature'] ?? '') as $signature) {
        if (hash_equals($expected, $signature)) {
            return true;
        }
    }
    return false;
}

/** Of two requests at the same time, one makes the file. */
function is_new(string $id): bool
{
    $directory = sys_get_temp_dir() . '/webhook-events';
    @mkdir($directory);
    return @fopen("$directory/$id", 'x') !== false;
}

function handle(array $event): void
{
    file_put_contents('php://stdout', json_encode($event) . "\n");
}

$headers = array_change_key_case(getallheaders());
$body = file_get_contents('php://input');
if (!is_genuine($headers, $body, $key)) {
    http_response_code(401);
    exit;
}
http_response_code(200);
if (function_exists('fastcgi_finish_request')) {
    fastcgi_finish_request();
}
if (is_new($headers['webhook-id'])) {
    handle(json_decode($body, true));
}
