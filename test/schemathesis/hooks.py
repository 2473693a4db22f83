"""Keeps apart what Schemathesis would mix up. Only requests meant to be valid are changed, but for the ids of what the
run needs."""

import os
from datetime import datetime, timedelta, timezone
from urllib.parse import urlsplit
from uuid import uuid4

import schemathesis
from hypothesis import strategies
from schemathesis import GenerationMode

# As the spec calls what is more than a pattern can say.
schemathesis.openapi.format("mailbox", strategies.emails(domains=strategies.just("example.com")))

# Nothing listens there, so that no stranger gets requests and nobody waits for a name to be found.
NOWHERE = "127.0.0.1:9"

# The keys and the session of the run. Without them, all that comes after is refused with 401.
OWN_IDS = os.environ["OWN_IDS"].split(",")


def keep_rules_of_emails(email):
    """What no schema can say: rules of several fields, of names and of the present time."""
    if not isinstance(email, dict):
        return
    # In the future, and at most some time ahead.
    if "scheduledAt" in email:
        email["scheduledAt"] = (datetime.now(timezone.utc) + timedelta(days=1)).isoformat()
    if "to" not in email:
        return
    # The three together have a bound, above that of each.
    for field in ("to", "cc", "bcc"):
        if isinstance(email.get(field), list):
            email[field] = email[field][:16]
    # Without an HTML or a text there is no message.
    email["text"] = email.get("text") or "Hello"
    # Names that differ in letter case only are one header, and some are refused in any case.
    email.pop("headers", None)
    # Two files of one email cannot share it.
    for number, attachment in enumerate(email.get("attachments") or []):
        attachment["contentId"] = f"file-{number}"


# Limits that are left out: nothing is found for them in up to a minute of trying, again for each operation. The tests
# of the project hold them.
HARD_TO_REACH = [
    ("Mailbox", "minLength"),
    ("Mailbox", "maxLength"),
    ("SegmentAnd", "properties", "conditions", "maxItems"),
    ("SegmentOr", "properties", "conditions", "maxItems"),
]


@schemathesis.hook
def before_load_schema(context, raw_schema):
    for path in HARD_TO_REACH:
        schema = raw_schema["components"]["schemas"]
        for name in path[:-1]:
            schema = schema[name]
        del schema[path[-1]]


def keep_access(case):
    """Lets nothing be done to the keys and the session of the run. Others of an unknown id are in their place."""
    own = case.path_parameters.get("id") if case.path_parameters else None
    if own in OWN_IDS:
        case.path_parameters["id"] = own.split("_")[0] + "_" + "0" * 26


@schemathesis.hook
def before_call(context, case, kwargs):
    keep_access(case)
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    # Another password ends the session of the run. The example has the present one, so that it would be taken.
    if case.operation.path == "/v1/user" and isinstance(case.body, dict) and case.body.pop("password", None):
        case.body.setdefault("name", "Ada")
    # A key used twice is one request: the answer would be a webhook an earlier test has deleted.
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = str(uuid4())
    # Nearly any text has the form of an international name, and few are one. A name can be added once.
    if isinstance(case.body, dict) and case.operation.path == "/v1/domains":
        case.body["name"] = f"{uuid4()}.test"
    # Contacts of one address are one person, whom another test may have deleted.
    if isinstance(case.body, dict) and case.operation.path.endswith("/contacts") and "email" in case.body:
        case.body["email"] = f"{uuid4()}@example.com"
    if isinstance(case.body, dict) and case.operation.path.startswith("/v1/emails"):
        for email in case.body.get("emails", [case.body]):
            keep_rules_of_emails(email)
    if isinstance(case.body, dict) and "url" in case.body:
        case.body["url"] = urlsplit(case.body["url"])._replace(netloc=NOWHERE).geturl()
