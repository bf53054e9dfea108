package jute

import "strconv"

// Error is the err field of a reply (KeeperException.Code). The zero Error is
// success; use OrNil to make a Go error of one.
type Error int32

// The codes of ZooKeeper 3.8.
const (
	OK                              Error = 0
	ErrSystemError                  Error = -1
	ErrRuntimeInconsistency         Error = -2
	ErrDataInconsistency            Error = -3
	ErrConnectionLoss               Error = -4
	ErrMarshallingError             Error = -5
	ErrUnimplemented                Error = -6
	ErrOperationTimeout             Error = -7
	ErrBadArguments                 Error = -8
	ErrUnknownSession               Error = -12
	ErrNewConfigNoQuorum            Error = -13
	ErrReconfigInProgress           Error = -14
	ErrAPIError                     Error = -100
	ErrNoNode                       Error = -101
	ErrNoAuth                       Error = -102
	ErrBadVersion                   Error = -103
	ErrNoChildrenForEphemerals      Error = -108
	ErrNodeExists                   Error = -110
	ErrNotEmpty                     Error = -111
	ErrSessionExpired               Error = -112
	ErrInvalidCallback              Error = -113
	ErrInvalidACL                   Error = -114
	ErrAuthFailed                   Error = -115
	ErrSessionMoved                 Error = -118
	ErrNotReadOnly                  Error = -119
	ErrEphemeralOnLocalSession      Error = -120
	ErrNoWatcher                    Error = -121
	ErrRequestTimeout               Error = -122
	ErrReconfigDisabled             Error = -123
	ErrSessionClosedRequireSASLAuth Error = -124
	ErrQuotaExceeded                Error = -125
	ErrThrottledOp                  Error = -127
)

var errorTexts = map[Error]string{
	OK: "ok", ErrSystemError: "system error", ErrRuntimeInconsistency: "runtime inconsistency",
	ErrDataInconsistency: "data inconsistency", ErrConnectionLoss: "connection loss",
	ErrMarshallingError: "marshalling error", ErrUnimplemented: "unimplemented",
	ErrOperationTimeout: "operation timeout", ErrBadArguments: "bad arguments",
	ErrUnknownSession: "unknown session", ErrNewConfigNoQuorum: "new config has no quorum",
	ErrReconfigInProgress: "reconfig in progress", ErrAPIError: "API error", ErrNoNode: "no node",
	ErrNoAuth: "not authorised", ErrBadVersion: "bad version",
	ErrNoChildrenForEphemerals: "ephemeral nodes may not have children", ErrNodeExists: "node exists",
	ErrNotEmpty: "node has children", ErrSessionExpired: "session expired",
	ErrInvalidCallback: "invalid callback", ErrInvalidACL: "invalid ACL", ErrAuthFailed: "authentication failed",
	ErrSessionMoved: "session moved", ErrNotReadOnly: "not a read-only call",
	ErrEphemeralOnLocalSession: "ephemeral node on a local session", ErrNoWatcher: "no such watcher",
	ErrRequestTimeout: "request timeout", ErrReconfigDisabled: "reconfig disabled",
	ErrSessionClosedRequireSASLAuth: "session closed, SASL required", ErrQuotaExceeded: "quota exceeded",
	ErrThrottledOp: "throttled",
}

// Error returns a short text.
func (e Error) Error() string {
	if s, ok := errorTexts[e]; ok {
		return "zookeeper: " + s
	}
	return "zookeeper: error " + strconv.Itoa(int(e))
}

// OrNil returns nil for OK and e otherwise.
func (e Error) OrNil() error {
	if e == OK {
		return nil
	}
	return e
}
