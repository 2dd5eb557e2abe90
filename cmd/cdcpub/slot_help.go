package main

// What the commands that change slots say below the flags' overview.

func (slotCreateCommand) Help() string {
	return `What is committed before it began is not in the slot, so create the publication
first. With --failover it waits until a standby would keep the slot.

Examples:

    cdcpub slot create -c cdcpub.yaml
    cdcpub slot create cdcpub --failover --url postgres://cdcpub@db.internal/shop`
}

func (slotDropCommand) Help() string {
	return `What the slot has not delivered stays undelivered: a new slot begins where the WAL
ends then. A slot that somebody holds is not dropped.

Example:

    cdcpub slot drop cdcpub --url postgres://cdcpub@db.internal/shop`
}

func (slotAdvanceCommand) Help() string {
	return `Counts the rows that would be skipped, by reading the slot without confirming, and
refuses if there are any, unless --skip-rows is given.

Examples:

    cdcpub slot advance cdcpub --to now
    cdcpub slot advance cdcpub --to 16/B374D848 --skip-rows --yes`
}

func (slotDrainCommand) Help() string {
	return `When it ends with 0, everything that was committed before it began is in Kafka and
confirmed. Stop the writers first if it is to be the end of all.

Example:

    cdcpub slot drain cdcpub --wait --timeout 10m`
}

func (slotTakeoverCommand) Help() string {
	return `Ends the holder with pg_terminate_backend, if it is a cdcpub or the one named by
--from. A holder that connects again must be stopped where it runs.

Examples:

    cdcpub slot takeover cdcpub
    cdcpub slot takeover cdcpub --from "Debezium Streaming"`
}
