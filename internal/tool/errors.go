package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"barnabas/internal/config"
	"barnabas/internal/jute"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// brokerError is an error that a broker answered, with what it said of it.
type brokerError struct {
	code *kerr.Error
	said string
}

// Error returns the broker's words, or the general ones of the code.
func (e *brokerError) Error() string {
	if e.said != "" {
		return e.said
	}
	return e.code.Description
}

// Unwrap returns the code.
func (e *brokerError) Unwrap() error { return e.code }

// answered turns a code and message of a response into an error, nil for none.
func answered(code int16, message *string) error {
	if code == 0 {
		return nil
	}
	e := &brokerError{code: kerr.TypedErrorForCode(code)}
	if message != nil {
		e.said = *message
	}
	return e
}

// javaName is the class that Java's clients make of a code.
func javaName(e *kerr.Error) string {
	var b strings.Builder
	for part := range strings.SplitSeq(e.Message, "_") {
		b.WriteString(part[:1] + strings.ToLower(part[1:]))
	}
	name := b.String()
	switch name {
	case "InvalidConfig":
		name = "InvalidConfiguration"
	case "TopicAlreadyExists":
		name = "TopicExists"
	case "InvalidTopicException":
		name = "InvalidTopic"
	case "RequestTimedOut":
		name = "Timeout"
	case "GroupIdNotFound", "NonEmptyGroup":
	}
	return "org.apache.kafka.common.errors." + name + "Exception"
}

// withClass writes an error as Java's toString of its exception.
func withClass(err error) string {
	var code *kerr.Error
	if errors.As(err, &code) {
		return javaName(code) + ": " + text(err)
	}
	return text(err)
}

// text is what a person should read of an error.
func text(err error) string {
	var code *kerr.Error
	var said *brokerError
	var many config.Errors
	var whole *sentence
	switch {
	case errors.As(err, &whole):
		return err.Error()
	case errors.As(err, &said):
		return said.Error()
	case errors.As(err, &code):
		return code.Description
	case errors.As(err, &many) && len(many) > 0:
		return many[0].Text
	case isUnreachable(err):
		return "Nobody answers: " + rootCause(err).Error()
	}
	return err.Error()
}

func isUnreachable(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns)
}

func rootCause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns
	}
	return err
}

// isOtherServer tells whether what answers does not speak Kafka's protocol as it
// was spoken to.
func isOtherServer(err error) bool {
	var closed *kgo.ErrFirstReadEOF
	return errors.As(err, &closed)
}

// passing tells whether a consumer's error may go away by itself, so that Java's
// consumer tries on: what a broker calls so, what a member gets over by joining
// its group again, what it has got over already, and whatever befell a connection
// but that one side does not trust the other: an alert of TLS is a "remote error".
func passing(err error) bool {
	var code *kerr.Error
	var op *net.OpError
	var lost *kgo.ErrDataLoss
	switch {
	case errors.As(err, &code):
		return code.Retriable || code == kerr.UnknownMemberID || code == kerr.IllegalGeneration
	case errors.As(err, &op) && op.Op == "remote error":
		return false
	}
	return isUnreachable(err) || isOtherServer(err) || kgo.IsRetryableBrokerErr(err) || errors.As(err, &lost) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// hint says what to do next about an error, if there is something.
func (c *Call) hint(err error) {
	var next string
	_, brokers := c.command.option("bootstrap-server")
	switch {
	case isUnreachable(err) && !brokers, errors.Is(err, jute.ErrConnectionLoss):
		next = "Is ZooKeeper running there? \"barnabas zookeeper\" or \"barnabas start\" starts one."
	case errors.Is(err, syscall.ECONNREFUSED):
		next = "Nothing listens there. Start a broker with \"barnabas start\", or name another with --bootstrap-server."
	case isUnreachable(err):
		next = "Check the host and port of --bootstrap-server, and the broker's advertised.listeners: it is what clients connect to after the first answer."
	case errors.Is(err, context.DeadlineExceeded):
		next = "No answer came in time. Is the broker at --bootstrap-server reachable, and does its security protocol fit --command-config?"
	case isOtherServer(err):
		next = "Is that a broker's port, not ZooKeeper's, and does security.protocol in --command-config fit it?"
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		next = "\"barnabas topics --list\" shows the topics there are."
	case errors.Is(err, kerr.InvalidReplicationFactor):
		next = "A topic has at most as many replicas as there are brokers; --replication-factor sets how many."
	case errors.Is(err, kerr.TopicAlreadyExists):
		next = "--if-not-exists makes this no error."
	case errors.Is(err, kerr.GroupIDNotFound):
		next = "\"barnabas consumer-groups --list\" shows the groups there are."
	case errors.Is(err, kerr.NonEmptyGroup):
		next = "Stop the group's consumers first; \"barnabas consumer-groups --describe --members\" shows them."
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed):
		next = "The principal has no right to this; --command-config sets who asks."
	case errors.Is(err, fs.ErrNotExist):
		next = "Check the file's name."
	}
	if next != "" {
		fmt.Fprintln(c.Err, next)
	}
}

// says is an error in the words of Kafka's script.
func says(format string, args ...any) error { return because(nil, format, args...) }

// because is says of an error for which there is a hint.
func because(cause error, format string, args ...any) error {
	return &sentence{fmt.Sprintf(format, args...), cause}
}

type sentence struct {
	said  string
	cause error
}

// Error returns Kafka's words.
func (s *sentence) Error() string { return s.said }

// Unwrap returns the cause, or nil.
func (s *sentence) Unwrap() error { return s.cause }

// ExitError ends the program with a status other than 1; what was wrong has
// been said.
type ExitError struct{ Code int }

// Error names the status.
func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }
