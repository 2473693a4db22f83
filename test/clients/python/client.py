"""What a user of the generated Python client would write."""

import hashlib
import hmac
import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from postern_client import AuthenticatedClient
from postern_client.api.events import list_events
from postern_client.api.subscribers import create_subscriber
from postern_client.api.webhooks import create_webhook, delete_webhook, get_webhook
from postern_client.models import (
    CreateSubscriber,
    CreateWebhook,
    Error,
    EventPage,
    EventTypeName,
    Mode,
    RecordedSubscriberAddedEvent,
    Subscriber,
    SubscriberAddedEvent,
    WebhookWithSecret,
)

client = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["API_KEY"])


def use_webhooks():
    wanted = CreateWebhook(url="https://example.com/hooks", events=[EventTypeName.CONTACT_CREATED])
    created = create_webhook.sync(client=client, body=wanted, idempotency_key="python")
    assert isinstance(created, WebhookWithSecret), created
    assert created.secret.startswith("whsec_"), created
    assert created.events == [EventTypeName.CONTACT_CREATED], created

    assert delete_webhook.sync_detailed(created.id, client=client).status_code == 204

    missing = get_webhook.sync(created.id, client=client)
    assert isinstance(missing, Error), missing
    assert missing.error.code == "not_found", missing

    print(f"The Python client created the webhook {created.id} and deleted it.")


class Endpoint(BaseHTTPRequestHandler):
    """Keeps the one delivery it gets."""

    def do_POST(self):
        self.server.signature = self.headers["X-Service-Signature"]
        self.server.body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def receive(endpoint, secret):
    """Waits for one delivery, verifies it and reads it by its type."""
    endpoint.body = None
    endpoint.timeout = 30
    endpoint.handle_request()
    assert endpoint.body is not None, "no delivery arrived"
    expected = hmac.new(secret.encode(), endpoint.body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(endpoint.signature, expected), endpoint.signature
    body = json.loads(endpoint.body)
    match body["type"]:
        case EventTypeName.SUBSCRIBER_ADDED:
            return SubscriberAddedEvent.from_dict(body)
        case other:
            raise AssertionError(other)


def read_events():
    """Reads one event as it is pushed, and again in the list of events."""
    with HTTPServer(("127.0.0.1", 0), Endpoint) as endpoint:
        wanted = CreateWebhook(
            url=f"http://127.0.0.1:{endpoint.server_port}", events=[EventTypeName.SUBSCRIBER_ADDED]
        )
        webhook = create_webhook.sync(client=client, body=wanted)
        assert isinstance(webhook, WebhookWithSecret), webhook
        added = create_subscriber.sync(client=client, body=CreateSubscriber(email="python@example.com"))
        assert isinstance(added, Subscriber), added
        pushed = receive(endpoint, webhook.secret)
    assert pushed.data.subscriber_id == added.id, pushed
    assert pushed.data.email == "python@example.com", pushed

    page = list_events.sync(client=client, type_=EventTypeName.SUBSCRIBER_ADDED)
    assert isinstance(page, EventPage), page
    [listed] = page.data
    assert isinstance(listed, RecordedSubscriberAddedEvent), listed
    assert (listed.id, listed.data, listed.mode) == (pushed.id, pushed.data, Mode.LIVE), listed

    print(f"The Python client read the event {pushed.id}, pushed and listed.")


use_webhooks()
read_events()
