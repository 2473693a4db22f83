// What a user of the generated Go client would write.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
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

	idempotencyKey := "go"
	created, err := client.CreateWebhookWithResponse(ctx,
		&CreateWebhookParams{IdempotencyKey: &idempotencyKey},
		CreateWebhook{Url: "https://example.com/hooks", Events: []EventTypeName{EventTypeNameContactCreated}})
	if err != nil {
		log.Fatal(err)
	}
	if created.JSON201 == nil {
		log.Fatalf("not created: %s", created.Body)
	}

	id := created.JSON201.Id
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
