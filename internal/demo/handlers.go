package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
)

const shopTables = `
CREATE TABLE cdcpub_demo.orders (
	id       text PRIMARY KEY,
	customer text NOT NULL,
	total    numeric(10,2) NOT NULL,
	state    text NOT NULL,
	version  bigint NOT NULL
);
CREATE TABLE cdcpub_demo.payments (
	order_id text PRIMARY KEY REFERENCES cdcpub_demo.orders,
	method   text NOT NULL,
	amount   numeric(10,2) NOT NULL
);
CREATE TABLE cdcpub_demo.parcels (
	order_id text PRIMARY KEY REFERENCES cdcpub_demo.orders,
	carrier  text NOT NULL,
	grams    integer NOT NULL
);`

// handler does one thing to an order, within a transaction, and returns the id
// of the outbox event that it wrote. errAgain and errOver ask for a rollback.
type handler func(ctx context.Context, tx pgx.Tx, order string) (event string, err error)

var (
	// errAgain: not now, but later.
	errAgain = errors.New("try again")
	// errOver: never.
	errOver = errors.New("nothing to do")
)

// The states of an order.
const (
	statePlaced    = "placed"
	statePaid      = "paid"
	statePacked    = "packed"
	stateCancelled = "cancelled"
)

type orderPlaced struct {
	EUR      string `json:"eur"`
	Items    []item `json:"items"`
	Customer string `json:"customer"`
}

type item struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

type orderPaid struct {
	EUR    string `json:"eur"`
	Method string `json:"method"`
}

type orderPacked struct {
	Carrier string `json:"carrier"`
	Grams   int    `json:"grams"`
}

type orderCancelled struct {
	Reason string `json:"reason"`
}

func place(ctx context.Context, tx pgx.Tx, order string) (string, error) {
	cents := 500 + rand.IntN(20_000)
	placed := orderPlaced{Customer: pick(customers), EUR: fmt.Sprintf("%d.%02d", cents/100, cents%100)}
	for range 1 + rand.IntN(2) {
		placed.Items = append(placed.Items, item{SKU: pick(goods), Quantity: 1 + rand.IntN(3)})
	}
	const insert = `INSERT INTO cdcpub_demo.orders (id, customer, total, state, version) VALUES ($1, $2, $3, $4, 1)`
	if _, err := tx.Exec(ctx, insert, order, placed.Customer, placed.EUR, statePlaced); err != nil {
		return "", err
	}
	return publish(ctx, tx, order, 1, "OrderPlaced", placed)
}

// declined is the share of payments that the bank refuses at first: 1 in 10.
const declined = 10

func pay(ctx context.Context, tx pgx.Tx, order string) (string, error) {
	o, err := lock(ctx, tx, order)
	switch {
	case err != nil:
		return "", err
	case o.state == stateCancelled:
		return "", errOver
	}
	paid := orderPaid{EUR: o.total, Method: pick(methods)}
	version, err := o.become(ctx, tx, statePaid)
	if err != nil {
		return "", err
	}
	const insert = `INSERT INTO cdcpub_demo.payments (order_id, method, amount) VALUES ($1, $2, $3)`
	if _, err := tx.Exec(ctx, insert, order, paid.Method, paid.EUR); err != nil {
		return "", err
	}
	event, err := publish(ctx, tx, order, version, "OrderPaid", paid)
	if err == nil && rand.IntN(declined) == 0 {
		// The answer comes late, as it does in life: everything is written
		// already, the event too, and must never be seen.
		return "", errAgain
	}
	return event, err
}

func pack(ctx context.Context, tx pgx.Tx, order string) (string, error) {
	o, err := lock(ctx, tx, order)
	switch {
	case err != nil:
		return "", err
	case o.state == stateCancelled:
		return "", errOver
	case o.state != statePaid:
		return "", errAgain // nothing is packed before it is paid
	}
	packed := orderPacked{Carrier: pick(carriers), Grams: 100 + rand.IntN(4900)}
	version, err := o.become(ctx, tx, statePacked)
	if err != nil {
		return "", err
	}
	const insert = `INSERT INTO cdcpub_demo.parcels (order_id, carrier, grams) VALUES ($1, $2, $3)`
	if _, err := tx.Exec(ctx, insert, order, packed.Carrier, packed.Grams); err != nil {
		return "", err
	}
	return publish(ctx, tx, order, version, "OrderPacked", packed)
}

func cancel(ctx context.Context, tx pgx.Tx, order string) (string, error) {
	o, err := lock(ctx, tx, order)
	switch {
	case err != nil:
		return "", err
	case o.state != statePlaced:
		return "", errOver // too late, it is paid
	}
	version, err := o.become(ctx, tx, stateCancelled)
	if err != nil {
		return "", err
	}
	return publish(ctx, tx, order, version, "OrderCancelled", orderCancelled{Reason: pick(reasons)})
}

// locked is an order whose row this transaction has locked.
type locked struct {
	id, state, total string
}

// lock waits for the order's row. From here to the end of the transaction
// nobody else changes the order: this is what makes its versions come in order.
func lock(ctx context.Context, tx pgx.Tx, order string) (locked, error) {
	o := locked{id: order}
	const query = `SELECT state, total::text FROM cdcpub_demo.orders WHERE id = $1 FOR UPDATE`
	err := tx.QueryRow(ctx, query, order).Scan(&o.state, &o.total)
	return o, err
}

// become changes the state and counts the version.
func (o locked) become(ctx context.Context, tx pgx.Tx, state string) (version int64, err error) {
	const update = `UPDATE cdcpub_demo.orders SET state = $2, version = version + 1 WHERE id = $1 RETURNING version`
	err = tx.QueryRow(ctx, update, o.id, state).Scan(&version)
	return version, err
}

// publish writes the event into the outbox, in the same transaction.
func publish(ctx context.Context, tx pgx.Tx, order string, version int64, eventType string, payload any) (event string, err error) {
	const insert = `INSERT INTO cdcpub_demo.outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		VALUES ('order', $1, $2, $3, $4) RETURNING event_id::text`
	err = tx.QueryRow(ctx, insert, order, version, eventType, payload).Scan(&event)
	return event, err
}

func pick(from []string) string { return from[rand.IntN(len(from))] }

var (
	customers = []string{"Ada", "Barbara", "Edgar", "Grace", "Jim", "Leslie", "Michael", "Tony"}
	goods     = []string{"tea", "coffee", "kettle", "cup", "honey", "spoon", "biscuits"}
	methods   = []string{"card", "invoice", "transfer"}
	carriers  = []string{"bike", "post", "van"}
	reasons   = []string{"ordered twice", "changed my mind", "found it cheaper"}
)
