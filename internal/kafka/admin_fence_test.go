package kafka

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// unready answers requests of a key with an error while left is above 0, as a
// broker does that has just started.
func unready(c *kfake.Cluster, key kmsg.Key, left *atomic.Int32, answer func(kmsg.Request) kmsg.Response) {
	c.ControlKey(int16(key), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if left.Add(-1) < 0 {
			return nil, nil, false
		}
		return answer(r), nil, true
	})
}

func noCoordinator(r kmsg.Request) kmsg.Response {
	response := r.ResponseKind().(*kmsg.FindCoordinatorResponse)
	response.ErrorCode = kerr.CoordinatorNotAvailable.Code
	return response
}

func noProducerIDs(r kmsg.Request) kmsg.Response {
	response := r.ResponseKind().(*kmsg.InitProducerIDResponse)
	response.ErrorCode = kerr.CoordinatorLoadInProgress.Code
	return response
}

func TestLookingWaitsForABrokerThatHasJustStarted(t *testing.T) {
	t.Run("and has no coordinator yet", func(t *testing.T) {
		c := startCluster(t, kfake.NumBrokers(1))
		var left atomic.Int32
		left.Store(3)
		unready(c, kmsg.FindCoordinator, &left, noCoordinator)
		got, err := newTestClient(t, fastConfig(c.ListenAddrs()...)).MayFence(t.Context(), fenceID)
		if got != PermissionGranted || err != nil || left.Load() >= 0 {
			t.Errorf("%s, error %v, %d refusals left", got, err, left.Load())
		}
	})
	t.Run("and whose coordinator loads", func(t *testing.T) {
		c := startCluster(t, kfake.NumBrokers(1))
		var left atomic.Int32
		left.Store(3)
		unready(c, kmsg.InitProducerID, &left, noProducerIDs)
		got, err := newTestClient(t, fastConfig(c.ListenAddrs()...)).MayFence(t.Context(), fenceID)
		if got != PermissionGranted || err != nil || left.Load() >= 0 {
			t.Errorf("%s, error %v, %d refusals left", got, err, left.Load())
		}
	})
	t.Run("and has no producer ids yet", func(t *testing.T) {
		c := startCluster(t, kfake.NumBrokers(1))
		var left atomic.Int32
		left.Store(3)
		unready(c, kmsg.InitProducerID, &left, noProducerIDs)
		if seen := describe(t, fastConfig(c.ListenAddrs()...)); seen.CanUseProducerIDs != PermissionGranted || left.Load() >= 0 {
			t.Errorf("%s, %d refusals left", seen.CanUseProducerIDs, left.Load())
		}
	})
}

func TestLookingForACoordinatorEndsWithItsContextAndIsNotKnown(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1))
	ctx, cancel := context.WithCancel(t.Context())
	var left atomic.Int32
	left.Store(1 << 30)
	asked := 0
	unready(c, kmsg.FindCoordinator, &left, func(r kmsg.Request) kmsg.Response {
		if asked++; asked == 3 {
			cancel()
		}
		return noCoordinator(r)
	})
	got, err := newTestClient(t, fastConfig(c.ListenAddrs()...)).MayFence(ctx, fenceID)
	if got != PermissionUnknown || err == nil {
		t.Errorf("%s, error %v", got, err)
	}
}
