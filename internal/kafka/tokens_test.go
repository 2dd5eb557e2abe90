package kafka

import (
	"context"
	"encoding/base64"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestATokenIsFetchedOnceUntilShortlyBeforeItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetched := 0
		tokens := NewTokens(func(context.Context) (Token, error) {
			fetched++
			time.Sleep(time.Second)
			return Token{Value: "t", Expires: time.Now().Add(time.Hour)}, nil
		})
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				if _, err := tokens.current(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		want := func(n int) {
			t.Helper()
			if _, err := tokens.current(t.Context()); err != nil || fetched != n {
				t.Errorf("fetched %d times, want %d (%v)", fetched, n, err)
			}
		}
		want(1)
		time.Sleep(time.Hour - tokenMargin - time.Millisecond)
		want(1)
		time.Sleep(time.Second)
		want(2)
		tokens.forget()
		want(3)
	})
}

func TestAFetchThatHangsIsBoundedAndHoldsUpNobodyWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := NewTokens(func(ctx context.Context) (Token, error) {
			<-ctx.Done()
			return Token{}, ctx.Err()
		})
		began := time.Now()
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := tokens.current(ctx); err == nil || time.Since(began) > time.Second {
				t.Errorf("waited %s: %v", time.Since(began), err)
			}
		}()
		if _, err := tokens.current(t.Context()); err == nil || time.Since(began) > tokenLimit+time.Second {
			t.Errorf("waited %s: %v", time.Since(began), err)
		}
		synctest.Wait()
	})
}

func TestTokensOfMSKAreSignedForTheRegion(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hush")
	t.Setenv("AWS_SESSION_TOKEN", "")
	token, err := MSKTokens("eu-north-1").fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := base64.RawURLEncoding.DecodeString(token.Value)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := url.Parse(string(text))
	if err != nil || signed.Host != "kafka.eu-north-1.amazonaws.com" || signed.Query().Get("Action") != "kafka-cluster:Connect" {
		t.Errorf("%s, %v", text, err)
	}
	if left := time.Until(token.Expires); left < time.Minute || left > 16*time.Minute {
		t.Errorf("good for %s", left)
	}
}
