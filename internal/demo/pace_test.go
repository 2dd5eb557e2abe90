package demo

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPermitsKeepTheRateAlsoAfterAPause(t *testing.T) {
	for _, rate := range []float64{0.5, 3, 20, 1000} {
		synctest.Test(t, func(t *testing.T) {
			stop := make(chan struct{})
			permits := pace(stop, rate, 0)
			began, taken := time.Now(), 0
			for ; time.Since(began) < time.Minute; taken++ {
				if taken == int(rate*10) {
					time.Sleep(5 * time.Second) // a slow database
				}
				<-permits
			}
			close(stop)
			// The last burst may have begun just before the minute was over.
			if want := int(rate * 60); taken < want || taken > want+1+int(rate*beat.Seconds()) {
				t.Errorf("rate %v: %d permits in a minute, want %d", rate, taken, want)
			}
		})
	}
}

func TestPermitsEndAtTheLimit(t *testing.T) {
	taken := 0
	for range pace(nil, 0, 300) {
		taken++
	}
	if taken != 300 {
		t.Errorf("%d permits, want 300", taken)
	}
}

func TestStopEndsPermitsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		permits := pace(stop, 0.001, 0)
		<-permits // the first one is due at once
		began := time.Now()
		close(stop)
		if _, more := <-permits; more || time.Since(began) > 0 {
			t.Errorf("another permit: %v, after %v", more, time.Since(began))
		}
	})
}
