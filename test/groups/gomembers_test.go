package groups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/IBM/sarama"
	segmentio "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// memberEnv makes this test binary a member of a group that prints what it
// reads, and leaves at SIGTERM: "LIBRARY BOOTSTRAP GROUP TOPIC".
const memberEnv = "BARNABAS_TEST_MEMBER"

func TestMain(m *testing.M) {
	if words := strings.Fields(os.Getenv(memberEnv)); len(words) == 4 {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := goMembers[words[0]](ctx, strings.Split(words[1], ","), words[2], words[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	real.Main(m)
}

var goMembers = map[string]func(ctx context.Context, bootstrap []string, group, topic string) error{
	"franz-go": consumeByFranz, "sarama": consumeBySarama, "segmentio": consumeBySegmentio,
}

func goMember(library string) startMember {
	return process(library, func(t *testing.T, addr, group, topic string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %s", memberEnv, library, addr, group, topic))
		return cmd
	})
}

func consumeByFranz(ctx context.Context, bootstrap []string, group, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond), kgo.AutoCommitInterval(200*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { fmt.Println(string(r.Value)) })
	}
	return nil
}

type saramaHandler struct{}

func (saramaHandler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (saramaHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (saramaHandler) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for m := range c.Messages() {
		fmt.Println(string(m.Value))
		s.MarkMessage(m, "")
	}
	return nil
}

func consumeBySarama(ctx context.Context, bootstrap []string, group, topic string) error {
	c := sarama.NewConfig()
	c.Version = sarama.V2_1_0_0
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Group.Session.Timeout, c.Consumer.Group.Heartbeat.Interval = 6*time.Second, 500*time.Millisecond
	c.Consumer.Offsets.AutoCommit.Interval = 200 * time.Millisecond
	g, err := sarama.NewConsumerGroup(bootstrap, group, c)
	if err != nil {
		return err
	}
	defer g.Close()
	for ctx.Err() == nil {
		if err := g.Consume(ctx, []string{topic}, saramaHandler{}); errors.Is(err, sarama.ErrClosedConsumerGroup) {
			return err
		}
	}
	return nil
}

func consumeBySegmentio(ctx context.Context, bootstrap []string, group, topic string) error {
	r := segmentio.NewReader(segmentio.ReaderConfig{Brokers: bootstrap, GroupID: group, Topic: topic, StartOffset: segmentio.FirstOffset,
		SessionTimeout: 6 * time.Second, HeartbeatInterval: 500 * time.Millisecond, CommitInterval: 200 * time.Millisecond,
		MaxWait: 500 * time.Millisecond, JoinGroupBackoff: 100 * time.Millisecond})
	defer r.Close()
	for {
		m, err := r.FetchMessage(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println(string(m.Value))
		if err := r.CommitMessages(ctx, m); err != nil && ctx.Err() == nil {
			return err
		}
	}
}
