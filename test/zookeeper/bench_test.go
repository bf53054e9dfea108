package zookeeper

import (
	"context"
	"net"
	"testing"

	"barnabas/internal/zookeeper"
)

func inProcess(b *testing.B) (embeddedServer, func() *zookeeper.Client) {
	s := embedded(b)
	return s, func() *zookeeper.Client {
		c, err := zookeeper.New(zookeeper.Options{Connect: "embedded",
			Dial: func(ctx context.Context, _ string) (net.Conn, error) { return s.Dial(ctx) }})
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
}

// From New to the first reply, inside one process; then the end of the session.
func BenchmarkFirstReplyInProcess(b *testing.B) {
	_, client := inProcess(b)
	for b.Loop() {
		c := client()
		if err := c.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		if _, _, err := c.Exists(b.Context(), "/"); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		c.Close()
		b.StartTimer()
	}
}

func BenchmarkGetInProcess(b *testing.B) {
	_, client := inProcess(b)
	c := client()
	if err := c.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := c.Get(b.Context(), "/"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPipelinedGetsInProcess(b *testing.B) {
	_, client := inProcess(b)
	c := client()
	if err := c.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	paths := make([]string, 1000)
	for i := range paths {
		paths[i] = "/"
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.GetMany(b.Context(), paths, false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/read")
}
