package pgserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are chosen below the ranges from which Linux (32768 up) and macOS
// (49152 up) take the local ports of outgoing connections: so a port stays free
// while a server is down and can be used again when it comes back.
const firstPort, lastPort = 15000, 31999

// FreePorts returns n different TCP ports on which nothing listens on
// 127.0.0.1. It does not reserve them.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range 200 * n {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		listener, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		defer listener.Close() // held until all are found, so that they differ
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no %d free ports between %d and %d on 127.0.0.1", n, firstPort, lastPort)
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// portFree says whether a listener could bind the port now.
func portFree(port int) bool {
	listener, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
