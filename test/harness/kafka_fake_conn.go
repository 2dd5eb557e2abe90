package harness

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fakeConn is the broker's end of a connection. It knows the produce requests
// that pass, and is late with the answers to them or changes their codes.
type fakeConn struct {
	net.Conn
	of *FakeKafka

	// The broker's reading goroutine owns these.
	header []byte // of the request, as far as it was read
	left   int    // bytes of the request that are to come

	mu       sync.Mutex
	produces map[int32]int16 // versions of the produce requests, by correlation id
}

// A request begins with its size, key, version and correlation id.
const requestHeader = 4 + 2 + 2 + 4

func (c *fakeConn) Read(to []byte) (int, error) {
	n, err := c.Conn.Read(to)
	for seen := to[:n]; len(seen) > 0; {
		if len(c.header) < requestHeader {
			k := min(requestHeader-len(c.header), len(seen))
			c.header = append(c.header, seen[:k]...)
			if seen = seen[k:]; len(c.header) == requestHeader {
				c.noteRequest()
			}
			continue
		}
		k := min(c.left, len(seen))
		seen, c.left = seen[k:], c.left-k
		if c.left == 0 {
			c.header = c.header[:0]
		}
	}
	return n, err
}

func (c *fakeConn) noteRequest() {
	c.left = int(binary.BigEndian.Uint32(c.header)) - (requestHeader - 4)
	if c.left == 0 {
		defer func() { c.header = c.header[:0] }()
	}
	if kmsg.Key(binary.BigEndian.Uint16(c.header[4:])) != kmsg.Produce {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.produces[int32(binary.BigEndian.Uint32(c.header[8:]))] = int16(binary.BigEndian.Uint16(c.header[6:]))
}

// Write gets whole answers, one at a time.
func (c *fakeConn) Write(answer []byte) (int, error) {
	version, ok := c.answers(answer)
	if !ok {
		return c.Conn.Write(answer)
	}
	c.of.hold()
	changed, err := c.of.refuseAppended(answer, version)
	if err == nil {
		_, err = c.Conn.Write(changed)
	}
	if err != nil {
		return 0, err
	}
	return len(answer), nil
}

// answers is the version of the produce request that this answers, if it does.
func (c *fakeConn) answers(answer []byte) (version int16, ok bool) {
	if len(answer) < 8 {
		return 0, false
	}
	correlation := int32(binary.BigEndian.Uint32(answer[4:]))
	c.mu.Lock()
	defer c.mu.Unlock()
	version, ok = c.produces[correlation]
	delete(c.produces, correlation)
	return version, ok
}

// refuseAppended gives batches that were appended the code of an error.
func (k *FakeKafka) refuseAppended(answer []byte, version int16) ([]byte, error) {
	response := kmsg.NewPtrProduceResponse()
	response.SetVersion(version)
	header := 8
	if response.IsFlexible() {
		header++ // no tags
	}
	if err := response.ReadFrom(answer[header:]); err != nil {
		return nil, fmt.Errorf("an answer to a produce request of version %d: %w", version, err)
	}
	changed := false
	for i := range response.Topics {
		for j := range response.Topics[i].Partitions {
			p := &response.Topics[i].Partitions[j]
			if p.ErrorCode != 0 {
				continue
			}
			if code := k.codeForAppended(); code != 0 {
				p.ErrorCode, p.BaseOffset, changed = code, -1, true
			}
		}
	}
	if !changed {
		return answer, nil
	}
	rewritten := response.AppendTo(append([]byte(nil), answer[:header]...))
	binary.BigEndian.PutUint32(rewritten, uint32(len(rewritten)-4))
	return rewritten, nil
}
