package slotmon

// Severity orders what was found, and verdicts. Its numbers are those of the
// monitoring-plugin convention (exit codes) from OK to Unknown; compare with
// Worse, since Unknown is not worse than Critical.
type Severity int

// The severities.
const (
	OK Severity = iota
	Warning
	Critical
	// Unknown: the server or the slot could not be looked at.
	Unknown
	// Info is worth showing and changes no verdict.
	Info
)

// FindingID names a kind of finding for ever: it is the id of the alert, a
// label of metrics and the name of a section in docs/runbook.md.
type FindingID string

// The findings. Those of the first group are critical as soon as they are seen.
const (
	SlotMissing        FindingID = "slot_missing"
	SlotLost           FindingID = "slot_lost"         // lost or invalidated
	SlotUnreserved     FindingID = "slot_unreserved"   // or safe_wal_size <= 0
	SlotWrongPlugin    FindingID = "slot_wrong_plugin" // or not logical
	SlotWrongDatabase  FindingID = "slot_wrong_database"
	SlotTwoPhase       FindingID = "slot_two_phase"
	SlotAhead          FindingID = "slot_ahead" // confirmed_flush_lsn beyond the WAL
	PublicationMissing FindingID = "publication_missing"
	PublicationTables  FindingID = "publication_tables"  // a table is missing, filtered or unlogged, or INSERT is not published
	PublicationChanged FindingID = "publication_changed" // since the monitor began
	PublisherBlocked   FindingID = "publisher_blocked"   // it waits for a human

	ServerUnreachable FindingID = "server_unreachable"
	RetainedWAL       FindingID = "retained_wal"       // bytes
	RetainedShare     FindingID = "retained_wal_share" // of max_slot_wal_keep_size
	TimeToLost        FindingID = "time_to_lost"       // until max_slot_wal_keep_size
	TimeToFull        FindingID = "time_to_full"       // until the volume is full
	SlotInactive      FindingID = "slot_inactive"
	ConfirmedLag      FindingID = "confirmed_lag" // does not fall while WAL grows
	CatalogXminAge    FindingID = "catalog_xmin_age"
	FailoverNotReady  FindingID = "failover_not_ready"
	PublisherStalled  FindingID = "publisher_stalled"

	LongTransaction     FindingID = "long_transaction"     // holds restart_lsn
	PreparedTransaction FindingID = "prepared_transaction" // holds restart_lsn
	NoRetentionLimit    FindingID = "no_retention_limit"   // max_slot_wal_keep_size = -1
)

// Finding is one reason of a verdict.
type Finding struct {
	ID       FindingID `json:"id"`
	Severity Severity  `json:"severity"`
	// Hold is the severity that an alert which is raised already keeps, by
	// limits that are relaxed: at least Severity. It keeps a value near its
	// limit from flapping.
	Hold Severity `json:"-"`
	// Summary is one sentence with the number and its limit: "retains 12 GiB
	// of WAL, more than 10 GiB".
	Summary string `json:"summary"`
	// Cause says what is known of the reason, Cure the next step or command.
	Cause string `json:"cause,omitempty"`
	Cure  string `json:"cure,omitempty"`
	// Value and Limit are the numbers in Summary, in Unit; nil where there is
	// none.
	Value *float64 `json:"value,omitempty"`
	Limit *float64 `json:"limit,omitempty"`
	Unit  string   `json:"unit,omitempty"` // bytes, seconds, ratio, transactions
	// AtOnce: an alert needs no minimum duration.
	AtOnce bool `json:"-"`
}

// Report is the judgement of one slot.
type Report struct {
	Verdict Severity `json:"verdict"`
	// Findings are the reasons, worst first; Info ones last.
	Findings []Finding `json:"findings"`
	// Trend is what the latest samples show.
	Trend Trend `json:"trend"`
	// SecondsToLost and SecondsToFull are until the slot is lost and until the
	// volume is full at the present rates; nil when they are not finite or not
	// known, and then the text says why: "retained WAL does not grow".
	SecondsToLost    *float64 `json:"seconds_to_lost"`
	SecondsToLostWhy string   `json:"seconds_to_lost_unknown,omitempty"`
	SecondsToFull    *float64 `json:"seconds_to_full"`
	SecondsToFullWhy string   `json:"seconds_to_full_unknown,omitempty"`
	// Culprit is one sentence that says who or what holds the WAL, as far as
	// it can be known; empty when nothing is held.
	Culprit string `json:"culprit,omitempty"`

	// near are findings with the severity OK that relaxed limits still hold.
	near []Finding
}
