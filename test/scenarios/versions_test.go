package scenarios

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/test/harness"
)

// everyVersion are the versions that are supported; versions the oldest and the
// newest of them. A scenario that says nothing runs on the newest.
var (
	everyVersion = []string{"14", "15", "16", "17", "18"}
	versions     = []string{oldest, newest}
)

const oldest, newest = "14", "18"

// onVersions are the scenarios in which PostgreSQL's versions differ most:
// decoding, the end of a walsender, keepalives. They run on every version.
var onVersions = map[string]func(*stand){
	"InterleavedAndSwappedCommits":              swappedCommits,
	"SavepointRollbackPublishesOnlyWhatWasKept": savepointRollback,
	"SIGTERMInTheMiddleOfALargeTransaction":     sigtermInTransaction,
	"WalsenderTerminated":                       walsenderTerminated,
	"IdleOutboxHoldsNoWAL":                      idleOutbox,
	"CopyOf10000Rows":                           copied,
	"InsertAndDeleteInOneTransaction":           insertedAndDeleted,
	"PreparedTransactions":                      preparedTransactions,
}

// onEveryVersion are further tests that run on every version, because of
// servers that stop and of what a publication can be.
var onEveryVersion = []func(*testing.T){
	TestFastStopWithKafkaDown,
	TestPostgreSQLKilledAndRestarted,
	TestAPublicationThatLosesTheOutboxBlocksThePublisher,
	TestPartitionedOutbox,
}

// onOldest are all others whose outcome can depend on PostgreSQL. They run on
// the oldest version as well as on the newest.
var onOldest = []func(*testing.T){
	TestThousandRowsInOneTransactionAndThousandTransactions,
	TestCleanRestartsRepeatNothing,
	TestCleanRestartsUnderLoadRepeatNothing,
	TestKill9WhileTheBrokerStalls,
	TestKeepalivesOverRowsInFlight,
	TestFastStopWithKafkaUp,
	TestFastStopWithKafkaDownAndFullWindow,
	TestHostileRoleAndDatabaseSettings,
	TestTablesOfSeveralSchemasOnOneSlot,
	TestUnpublishableRowStandsStillUntilItIsGivenUp,
	TestRefusalsSayWhatAndWhatToDo,
	TestAnotherDatabaseIsRefused,
	TestWrongUserOrPasswordIsRefused,
	TestLostSlotNeedsADecision,
	TestSlotInUseStandsByAndTakesOver,
	TestStatusOfAStandby,
	TestRotationOnBothSidesUnderLoad,
	TestColumnTypes,
	TestDDLOnTheOutbox,
	TestEveryOperationIsPublishedAndOnlyInsertsCount,
	TestAMappedColumnIsRenamed,
	TestAMappedColumnIsRenamedForAWhile,
	TestAMappedColumnIsRenamedWithinATransaction,
	TestAMappedColumnIsDropped,
	TestTheOutboxIsReplacedInOneTransaction,
	TestATableOfTheSameNameIsNotPublished,
	TestNamesThatNeedQuotes,
	TestDatabasesOfOtherEncodings,
	TestTextThatIsNotUTF8StandsStill,
	TestPayloadsOfFiveMegabytes,
	TestSettingsOfTheRoleChangeNothing,
}

func TestEveryVersion(t *testing.T) {
	beside(t)
	tests, err := findTests()
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range everyVersion {
		t.Run("PostgreSQL_"+version, func(t *testing.T) {
			beside(t)
			for name, scenario := range onVersions {
				if tests[name] != nil && version == newest {
					continue // it is a test of its own
				}
				t.Run(name, func(t *testing.T) {
					parallel(t)
					server := shared.Postgres(t, "", "max_prepared_transactions=10")
					if got := fmt.Sprint(server.Installation().Major); got != version {
						t.Fatalf("PostgreSQL %s runs, the scenario wants %s", got, version)
					}
					scenario(newStand(t, options{postgres: server}))
				})
			}
			for _, test := range again(version) {
				t.Run(nameOf(test), func(t *testing.T) {
					beside(t)
					test(t)
				})
			}
		})
	}
}

// again are the tests that run on a version although they do by themselves on
// the newest.
func again(version string) (tests []func(*testing.T)) {
	if version != newest {
		tests = append(tests, onEveryVersion...)
	}
	if version == oldest {
		tests = append(tests, onOldest...)
	}
	return tests
}

// nameOf is the name of a test without "Test".
func nameOf(test func(*testing.T)) string {
	full := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
	return strings.TrimPrefix(full[strings.LastIndex(full, ".")+1:], "Test")
}

// major is the version of PostgreSQL that a test gets, as a number.
func major(t *testing.T) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(harness.PostgresVersion(t.Name()), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// copied: COPY writes its rows to the WAL in another form than INSERT.
func copied(s *stand) {
	const rows = 10_000
	p := s.run()
	n, err := s.sql.CopyFrom(s.ctx, pgx.Identifier{"outbox"},
		[]string{"aggregate_type", "aggregate_id", "aggregate_version", "event_type", "payload"},
		pgx.CopyFromSlice(rows, func(i int) ([]any, error) {
			return []any{"order", fmt.Sprintf("o-%d", i%aggregates), i / aggregates, "OrderChanged", map[string]int{"number": i}}, nil
		}))
	s.no(err)
	s.delivered()
	s.stop(p)
	if report := s.check(nil); n != rows || report.Events != rows || report.Repeated != 0 {
		s.t.Errorf("%d rows copied, %d events, %d repeated", n, report.Events, report.Repeated)
	}
}

// insertedAndDeleted: what counts is the INSERT in the WAL. The table is empty
// at every commit.
func insertedAndDeleted(s *stand) {
	p := s.run()
	for i := range 20 {
		s.exec("BEGIN")
		s.exec("INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type) SELECT 'order', 'gone-' || n, $1, 'T' FROM generate_series(1, 5) n", i)
		s.exec("DELETE FROM outbox")
		s.exec("COMMIT")
	}
	s.delivered()
	s.stop(p)
	if report := s.check(nil); report.Events != 100 || report.Records != 100 {
		s.t.Errorf("%d events and %d records, want 100", report.Events, report.Records)
	}
}

// preparedTransactions: a row exists from COMMIT PREPARED on, behind what was
// committed since PREPARE, and not at all after ROLLBACK PREPARED.
func preparedTransactions(s *stand) {
	const insert = "INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type) VALUES ('order', $1, $2, 'T')"
	p := s.run()
	for i := range 10 {
		kept, undone := fmt.Sprintf("%s-kept-%d", s.slot, i), fmt.Sprintf("%s-undone-%d", s.slot, i)
		s.exec("BEGIN")
		s.exec(insert, "prepared", i)
		s.exec("PREPARE TRANSACTION '" + kept + "'")
		s.exec("BEGIN")
		s.exec(insert, "undone", i)
		s.exec("PREPARE TRANSACTION '" + undone + "'")
		s.exec(insert, "between", i)
		s.delivered()
		s.exec("COMMIT PREPARED '" + kept + "'")
		s.exec("ROLLBACK PREPARED '" + undone + "'")
		s.delivered()
	}
	s.stop(p)
	if report := s.check(nil); report.Events != 20 {
		s.t.Errorf("%d events, want 20", report.Events)
	}
	for i, row := range s.rows {
		if want := []string{"between", "prepared"}[i%2]; row.AggregateID != want {
			s.t.Fatalf("the history is not what the scenario means: row %d is %s, not %s", i, row.AggregateID, want)
		}
	}
}
