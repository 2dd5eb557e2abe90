package demo

import "time"

// beat is the shortest pause between two bursts of permits. Permits come in
// bursts, so that the handlers of one order meet at its row lock at low rates
// too.
const beat = 100 * time.Millisecond

// pace hands out a permit for each event that may be written: rate of them a
// second, or as fast as they are taken if rate is 0. The channel is closed
// after limit permits (0: never) or when stop is closed.
func pace(stop <-chan struct{}, rate float64, limit int) <-chan struct{} {
	permits := make(chan struct{})
	go func() {
		defer close(permits)
		began := time.Now()
		for given := 0; limit == 0 || given < limit; given++ {
			if rate > 0 && !due(stop, began, rate, given) {
				return
			}
			select {
			case permits <- struct{}{}:
			case <-stop:
				return
			}
		}
	}()
	return permits
}

// due waits for the time of a burst, which is what the rate makes of one beat,
// and one permit at least. What was missed is caught up.
func due(stop <-chan struct{}, began time.Time, rate float64, given int) bool {
	if given%max(1, int(rate*beat.Seconds())) != 0 {
		return true
	}
	select {
	case <-time.After(time.Until(began.Add(time.Duration(float64(given) / rate * float64(time.Second))))):
		return true
	case <-stop:
		return false
	}
}
