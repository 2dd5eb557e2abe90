package wal

import (
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
)

func TestARowAfterAPauseIsHandedOverAtOnce(t *testing.T) {
	inFakeTime(t, func(r *running) {
		for i := range 3 {
			r.sleep(time.Second)
			sent := time.Now()
			r.send(transaction(pglogrepl.LSN(0x2000+i*0x1000), "a")...)
			for row := false; !row; {
				for _, e := range r.take().Events {
					row = row || e.Kind == Insert
				}
			}
			if waited := time.Since(sent); waited != 0 {
				t.Errorf("row %d was held back for %s", i, waited)
			}
		}
	})
}

func TestRowsInQuickSuccessionAreHandedOverTogether(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.send(transaction(0x1800, "first")...)
		r.events(2) // the first goes at once
		const rows = 100
		var messages [][]byte
		for i := range rows {
			messages = append(messages, transaction(pglogrepl.LSN(0x2000+i*0x1000), "a")...)
		}
		r.send(messages...)
		began, batches := time.Now(), 0
		for seen := 0; seen < rows; batches++ {
			for _, e := range r.take().Events {
				if e.Kind == Insert {
					seen++
				}
			}
		}
		if batches > 2 {
			t.Errorf("%d batches for %d rows that came at the same moment", batches, rows)
		}
		if took := time.Since(began); took > 2*batchInterval {
			t.Errorf("the rows were held back for %s", took)
		}
	})
}
