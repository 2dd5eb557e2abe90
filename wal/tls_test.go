package wal

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// walsenders write one TLS record per message. What came in one piece must
// still be one batch, and records cut in two must survive yields.
func TestOverTLSABatchIsStillWhatOneReadGave(t *testing.T) {
	certificate := selfSigned(t)
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t)
		records := make(chan *recordWriter, 1)
		config := server.config()
		config.Connect = func(context.Context) (*ConnConfig, error) {
			c, err := server.connConfig("postgres://cdcpub@fake/shop?sslmode=require")
			if err == nil {
				c.DialFunc = func(context.Context, string, string) (net.Conn, error) {
					client, far := net.Pipe()
					server.closed.Add(1)
					go func() {
						defer server.closed.Done()
						defer far.Close()
						_, _ = io.ReadFull(far, make([]byte, 8)) // SSLRequest
						_, _ = far.Write([]byte{'S'})
						raw := &recordWriter{Conn: far}
						select {
						case records <- raw:
						default: // a look
						}
						server.serve(tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{certificate}}), lookAlive)
					}()
					return client, nil
				}
			}
			return c, err
		}
		stream, err := Open(context.Background(), config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		out := make(chan *Batch)
		go func() {
			if err := stream.Run(ctx, out); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		synctest.Wait()

		raw := <-records
		records <- nil
		raw.held = []byte{}
		for _, payload := range transaction(0x2000, "a", "b", "c") {
			server.stream.write(&pgproto3.CopyData{Data: payload}) // a record each
		}
		go raw.Conn.Write(raw.held)
		if got := kinds((<-out).Events); got != "BIIIC" {
			t.Errorf("the first batch is %s", got)
		}

		raw.held = []byte{}
		server.stream.send(transaction(0x4000, "d")...)
		go func() {
			for i := range raw.held {
				time.Sleep(7 * time.Second) // a status update is due before each byte
				_, _ = raw.Conn.Write(raw.held[i : i+1])
			}
		}()
		got := ""
		for len(got) < 3 {
			got += kinds((<-out).Events)
		}
		if got != "BIC" {
			t.Errorf("byte by byte: %s", got)
		}
		cancel()
		server.closed.Wait()
	})
}

// recordWriter holds TLS records back.
type recordWriter struct {
	net.Conn
	held []byte // nil: nothing is held back
}

func (w *recordWriter) Write(p []byte) (int, error) {
	if w.held == nil {
		return w.Conn.Write(p)
	}
	w.held = append(w.held, p...)
	return len(p), nil
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
