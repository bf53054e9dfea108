package client

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Transactional makes a producer write in transactions (KIP-98, since 0.11):
// between Begin and Commit or Abort. The id is the producer's own, also after
// it starts again; a transaction that lasts longer than timeout is aborted
// (transactional.id, transaction.timeout.ms). It implies Idempotent.
func Transactional(id string, timeout time.Duration) ProducerOption {
	return producerOption(func(c *producerConfig) { c.transactionalID, c.transactionTimeout, c.idempotent = id, timeout, true })
}

func (c *producerConfig) transactionOptions() []kgo.Opt {
	if c.transactionalID == "" {
		return nil
	}
	return []kgo.Opt{kgo.TransactionalID(c.transactionalID), kgo.TransactionTimeout(c.transactionTimeout)}
}

// Begin begins a transaction. Records can be sent only after it.
func (p *Producer) Begin() error { return own(p.kafka.BeginTransaction()) }

// Commit sends what is queued and ends the transaction: consumers of committed
// records see all of it. If a record failed, or the transaction was aborted
// meanwhile, that is the error, and Abort must follow.
func (p *Producer) Commit(ctx context.Context) error {
	if err := p.Flush(ctx); err != nil {
		return err
	}
	return own(p.kafka.EndTransaction(ctx, kgo.TryCommit))
}

// Abort gives up what is queued and ends the transaction: consumers of
// committed records see nothing of it.
func (p *Producer) Abort(ctx context.Context) error {
	if err := p.topics.drained(ctx); err != nil {
		return err
	}
	if err := p.kafka.AbortBufferedRecords(ctx); err != nil {
		return own(err)
	}
	return own(p.kafka.EndTransaction(ctx, kgo.TryAbort))
}
