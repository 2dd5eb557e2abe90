package kafka

// release is the newest sign of one Kafka release: the first that takes this
// version of this request on a listener for clients, with ZooKeeper as well as
// with KRaft.
type release struct {
	name         string
	key, version int16
}

// releases is sorted from new to old. Source: the validVersions of
// clients/src/main/resources/common/message at each release. 3.4 added nothing
// that clients can see.
var releases = [...]release{
	{"4.4 or newer", 18, 5},
	{"4.3", 35, 5},
	{"4.2", 2, 11},
	{"4.1", 0, 13},
	{"4.0", 3, 13},
	{"3.9", 1, 17},
	{"3.8", 0, 11},
	{"3.7", 0, 10},
	{"3.6", 24, 4},
	{"3.5", 1, 15},
	{"3.3 or 3.4", 29, 3},
	{"3.2", 11, 9},
	{"3.1", 1, 13},
	{"3.0", 10, 4},
	{"2.8", 0, 9},
	{"2.7", 19, 6},
	{"2.6", 32, 3},
	{"2.5", 22, 3},
	{"2.4", 3, 9},
	{"2.3", 3, 8},
	{"2.2", 2, 5},
	{"2.1", 3, 7},
	{"2.0", 3, 6},
	{"1.1", 32, 1},
	{"1.0", 3, 5},
	{"0.11", 3, 4},
}

// release guesses the release of a broker from what it offers.
func (o offers) release() string {
	for _, r := range releases {
		if newest, ok := o[r.key]; ok && newest >= r.version {
			return r.name
		}
	}
	return ""
}
