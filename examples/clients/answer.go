// Store a provider's stream while it comes, and pass it on to somebody who reads along.
// Usage: go run answer.go LEDGER THREAD REQUEST PROVIDER, with a token in LEDGER_TOKEN.
package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

// upload pipes the provider's events into the ledger. It may be called again with the same request.
func upload(ledger, thread, request string, events io.Reader) (int, string, error) {
	target := ledger + "/v1/threads/" + url.PathEscape(thread) + "/drafts/upload?format=openai-chat&lease=3"
	post, err := http.NewRequest("POST", target, events)
	if err != nil {
		return 0, "", err
	}
	post.Header.Set("Authorization", "Bearer "+os.Getenv("LEDGER_TOKEN"))
	post.Header.Set("Idempotency-Key", request)
	post.Header.Set("Content-Type", "text/event-stream")
	response, err := http.DefaultClient.Do(post)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func main() {
	ledger, thread, request, provider := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	for tries := 0; tries < 100; tries++ {
		stream, err := http.Get(provider)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		status, body, err := upload(ledger, thread, request, io.TeeReader(stream.Body, os.Stdout))
		stream.Body.Close()
		if err == nil && status < 300 {
			return
		}
		if err == nil && status != 408 && status != 409 && status < 500 {
			fmt.Fprintln(os.Stderr, body)
			os.Exit(1)
		}
		time.Sleep(500 * time.Millisecond) // the server is gone or stops, or waits for the lease of the last try
	}
	os.Exit(1)
}
