package server

import (
	"errors"
	"testing"
)

func TestConnectionsOfOneAddressAreLimited(t *testing.T) {
	q := newQuota(Limits{MaxPerIP: 2, MaxPerIPOf: map[string]int{"10.0.0.9": 0}})
	l := &Listener{Name: "PLAINTEXT"}
	enter := func(host string) error { return q.enter(l, host, nil, nil) }
	for _, host := range []string{"10.0.0.1", "10.0.0.1", "10.0.0.2"} {
		if err := enter(host); err != nil {
			t.Fatalf("%s: %v", host, err)
		}
	}
	if err := enter("10.0.0.1"); !errors.Is(err, errTooManyFromAddress) {
		t.Fatalf("third connection: %v", err)
	}
	if err := enter("10.0.0.9"); !errors.Is(err, errTooManyFromAddress) {
		t.Fatalf("address with an override of 0: %v", err)
	}
	q.leave(l, "10.0.0.1")
	if err := enter("10.0.0.1"); err != nil {
		t.Fatal(err)
	}
}

func TestALimitOfZeroLetsInWhoHasAnother(t *testing.T) {
	l := Limits{MaxPerIPOf: map[string]int{"10.0.0.1": 1}}
	l.fill()
	q := newQuota(l)
	for host, want := range map[string]error{"10.0.0.1": nil, "10.0.0.2": errTooManyFromAddress} {
		if err := q.enter(&Listener{}, host, nil, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestConnectionsBeyondTheBrokersLimitWaitForAPlace(t *testing.T) {
	q := newQuota(Limits{MaxConnections: 1, MaxPerIP: 10})
	l, between := &Listener{Name: "A"}, &Listener{Name: "B", InterBroker: true}
	if err := q.enter(l, "h", nil, nil); err != nil {
		t.Fatal(err)
	}
	crowded := false
	if err := q.enter(between, "h", nil, func() { crowded = true }); err != nil || !crowded {
		t.Fatalf("a broker's connection: %v, made room: %v", err, crowded)
	}
	got := make(chan error)
	go func() { got <- q.enter(l, "h", nil, nil) }()
	q.leave(between, "h")
	q.leave(l, "h")
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	if err := q.enter(l, "h", stop, nil); err == nil {
		t.Fatal("let in beyond the limit while stopping")
	}
}
