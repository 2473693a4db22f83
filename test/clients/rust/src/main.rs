//! What a user of the generated Rust client would write.

use postern_client::apis::configuration::Configuration;
use postern_client::apis::{emails_api, events_api, subscribers_api, webhooks_api, Error};
use postern_client::models::{
    CreateSubscriber, CreateWebhook, Event, EventTypeName, Mode, PushedEvent, SendEmail, SendEmailTo,
};
use std::{env, thread, time::Duration};
use tiny_http::{Response, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let configuration = Configuration {
        base_path: env::var("BASE_URL").expect("BASE_URL"),
        bearer_access_token: Some(env::var("API_KEY").expect("API_KEY")),
        ..Configuration::default()
    };
    use_webhooks(&configuration).await;
    send_emails(&configuration).await;
    read_events(&configuration).await;
}

async fn use_webhooks(configuration: &Configuration) {
    let wanted = CreateWebhook::new(
        "https://example.com/hooks".to_owned(),
        vec![EventTypeName::ContactCreated],
    );
    let created = webhooks_api::create_webhook(configuration, wanted, Some("rust"))
        .await
        .expect("a webhook");
    assert!(created.secret.starts_with("whsec_"), "{created:?}");
    assert_eq!(created.events, [EventTypeName::ContactCreated]);

    webhooks_api::delete_webhook(configuration, &created.id)
        .await
        .expect("the webhook to be deleted");
    match webhooks_api::get_webhook(configuration, &created.id).await {
        Err(Error::ResponseError(response)) if response.status.as_u16() == 404 => {
            assert!(response.content.contains("not_found"), "{}", response.content)
        }
        other => panic!("found after it was deleted: {other:?}"),
    }
    println!("The Rust client created the webhook {} and deleted it.", created.id);
}

/// To one recipient as a string and to several as a list: both are forms of `to`.
async fn send_emails(configuration: &Configuration) {
    let one = SendEmailTo::Mailbox("ada@example.com".to_owned());
    let several = SendEmailTo::ArrayVecString(vec![
        "ada@example.com".to_owned(),
        "Grace Hopper <grace@example.com>".to_owned(),
    ]);
    for (to, expected) in [
        (one, vec!["ada@example.com"]),
        (several, vec!["ada@example.com", "Grace Hopper <grace@example.com>"]),
    ] {
        let mut email = SendEmail::new("hello@example.com".to_owned(), to);
        email.subject = Some("Hello".to_owned());
        email.text = Some(Some("From Rust.".to_owned()));
        let accepted = emails_api::send_email(configuration, email, None)
            .await
            .expect("an email");
        let email = emails_api::get_email(configuration, &accepted.id)
            .await
            .expect("the email that was sent");
        assert_eq!(email.to, expected);
        println!("The Rust client sent the email {}.", email.id);
    }
}

/// One event as it is pushed, and again in the list of events.
async fn read_events(configuration: &Configuration) {
    let server = Server::http("127.0.0.1:0").expect("an endpoint");
    let url = format!("http://{}", server.server_addr());
    let endpoint = thread::spawn(move || receive(server));
    webhooks_api::create_webhook(
        configuration,
        CreateWebhook::new(url, vec![EventTypeName::SubscriberAdded]),
        None,
    )
    .await
    .expect("a webhook");
    let wanted = CreateSubscriber::new("rust@example.com".to_owned());
    let added = subscribers_api::create_subscriber(configuration, wanted, None)
        .await
        .expect("a subscriber");

    let pushed = match endpoint.join().expect("a delivery") {
        PushedEvent::SubscriberAddedEvent(event) => event,
        other => panic!("another type: {other:?}"),
    };
    assert_eq!(pushed.data.subscriber_id, added.id);
    assert_eq!(pushed.data.email, "rust@example.com");

    let of_type = Some(EventTypeName::SubscriberAdded);
    let page = events_api::list_events(configuration, None, None, of_type, None, None, None, None, None)
        .await
        .expect("a page of events");
    match page.data.as_slice() {
        [Event::RecordedSubscriberAddedEvent(listed)] => {
            assert_eq!((&listed.id, &listed.data, listed.mode), (&pushed.id, &pushed.data, Mode::Test));
        }
        other => panic!("not the one event: {other:?}"),
    }
    println!("The Rust client read the event {}, pushed and listed.", pushed.id);
}

/// Takes one delivery and reads its body.
fn receive(server: Server) -> PushedEvent {
    let mut request = server
        .recv_timeout(Duration::from_secs(30))
        .expect("the endpoint to listen")
        .expect("a delivery within 30 s");
    let event = serde_json::from_reader(request.as_reader()).expect("an event");
    request.respond(Response::empty(204)).expect("the answer to be sent");
    event
}
