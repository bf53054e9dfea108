// Package cluster runs whole brokers through what happens to them in life:
// crashes, lost and doubled registrations, a ZooKeeper that is not there, ports
// and folders that somebody else has.
package cluster
