package kafka

import (
	"context"
	"time"
)

const (
	// tokenLimit bounds the fetch of one token.
	tokenLimit = 10 * time.Second
	// tokenMargin is how long before its end a token is used no more.
	tokenMargin = 15 * time.Second
)

// Tokens hands out bearer tokens and keeps one until it expires. Many
// connections that begin at once cost one fetch. Safe for concurrent use.
type Tokens struct {
	fetch func(context.Context) (Token, error)
	// turn holds one element while somebody looks at cached or fetches.
	turn   chan struct{}
	cached Token
}

// Token is a bearer token. The zero Expires is unknown: such a token is fetched
// anew for each connection.
type Token struct {
	Value   string
	Expires time.Time
}

// NewTokens returns Tokens from a fetch of one, whose errors must hold no
// secret.
func NewTokens(fetch func(context.Context) (Token, error)) *Tokens {
	return &Tokens{fetch: fetch, turn: make(chan struct{}, 1)}
}

// current returns a token that is good for a while yet.
func (t *Tokens) current(ctx context.Context) (string, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if time.Now().Add(tokenMargin).Before(t.cached.Expires) {
		return t.cached.Value, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokenLimit)
	defer cancel()
	token, err := t.fetch(ctx)
	if err != nil {
		return "", err
	}
	t.cached = token
	return token.Value, nil
}

// forget drops the cached token, which a broker has refused.
func (t *Tokens) forget() {
	t.turn <- struct{}{}
	t.cached = Token{}
	<-t.turn
}
