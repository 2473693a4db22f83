"""What a user of the generated Python client would write."""

import os

from postern_client import AuthenticatedClient
from postern_client.api.webhooks import create_webhook, delete_webhook, get_webhook
from postern_client.models import CreateWebhook, Error, EventTypeName, WebhookWithSecret

client = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["API_KEY"])

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
