// What a user of the generated Go client would write.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"
)

func main() {
	ctx := context.Background()
	key := "Bearer " + os.Getenv("API_KEY")
	client, err := NewClientWithResponses(os.Getenv("BASE_URL"),
		WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", key)
			return nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	useWebhooks(ctx, client)
	readEvents(ctx, client)
}

func createWebhook(ctx context.Context, client *ClientWithResponses, wanted CreateWebhook) *WebhookWithSecret {
	idempotencyKey := "go " + wanted.Url
	created, err := client.CreateWebhookWithResponse(ctx, &CreateWebhookParams{IdempotencyKey: &idempotencyKey}, wanted)
	if err != nil {
		log.Fatal(err)
	}
	if created.JSON201 == nil {
		log.Fatalf("not created: %s", created.Body)
	}
	return created.JSON201
}

func useWebhooks(ctx context.Context, client *ClientWithResponses) {
	id := createWebhook(ctx, client,
		CreateWebhook{Url: "https://example.com/hooks", Events: []EventTypeName{EventTypeNameContactCreated}}).Id
	deleted, err := client.DeleteWebhookWithResponse(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	if deleted.StatusCode() != http.StatusNoContent {
		log.Fatalf("not deleted: %s", deleted.Body)
	}

	missing, err := client.GetWebhookWithResponse(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	if missing.JSON404 == nil || missing.JSON404.Error.Code != ErrorErrorCodeNotFound {
		log.Fatalf("found after it was deleted: %s", missing.Body)
	}

	fmt.Printf("The Go client created the webhook %s and deleted it.\n", id)
}

// delivery is a request of the service as it arrived.
type delivery struct {
	signature string
	body      []byte
}

// readEvents reads one event as it is pushed, and again in the list of events.
func readEvents(ctx context.Context, client *ClientWithResponses) {
	deliveries := make(chan delivery, 1)
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			log.Fatal(err)
		}
		deliveries <- delivery{request.Header.Get("X-Service-Signature"), body}
	}))
	defer endpoint.Close()

	types := []EventTypeName{EventTypeNameSubscriberAdded}
	webhook := createWebhook(ctx, client, CreateWebhook{Url: endpoint.URL, Events: types})
	added, err := client.CreateSubscriberWithResponse(ctx, &CreateSubscriberParams{},
		CreateSubscriber{Email: "go@example.com"})
	if err != nil {
		log.Fatal(err)
	}
	if added.JSON201 == nil {
		log.Fatalf("not added: %s", added.Body)
	}

	pushed := receive(deliveries, webhook.Secret)
	if pushed.Data.SubscriberId != added.JSON201.Id || pushed.Data.Email != "go@example.com" {
		log.Fatalf("pushed for another: %+v", pushed)
	}

	events, err := client.ListEventsWithResponse(ctx, &ListEventsParams{Type: &types[0]})
	if err != nil {
		log.Fatal(err)
	}
	if events.JSON200 == nil || len(events.JSON200.Data) != 1 {
		log.Fatalf("not the one event: %s", events.Body)
	}
	listed, err := events.JSON200.Data[0].AsRecordedSubscriberAddedEvent()
	if err != nil {
		log.Fatal(err)
	}
	if listed.Id != pushed.Id || listed.Data != pushed.Data || listed.Mode != ModeLive {
		log.Fatalf("listed is %+v, pushed was %+v", listed, pushed)
	}
	fmt.Printf("The Go client read the event %s, pushed and listed.\n", pushed.Id)
}

// receive verifies the next delivery and reads it by its type.
func receive(deliveries <-chan delivery, secret string) SubscriberAddedEvent {
	var received delivery
	select {
	case received = <-deliveries:
	case <-time.After(30 * time.Second):
		log.Fatal("no delivery arrived")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(received.body)
	if !hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(received.signature)) {
		log.Fatalf("%s is not the signature of %s", received.signature, received.body)
	}
	var event PushedEvent
	if err := json.Unmarshal(received.body, &event); err != nil {
		log.Fatal(err)
	}
	switch event.Type {
	case EventTypeNameSubscriberAdded:
		added, err := event.AsSubscriberAddedEvent()
		if err != nil {
			log.Fatal(err)
		}
		return added
	default:
		log.Fatalf("another type: %s", event.Type)
		panic("unreachable")
	}
}
