package api

import (
	"context"
	"errors"
	"slices"
	"sync"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/txn"
	"barnabas/internal/record"
	"barnabas/internal/wire"
)

// OpenTransactions are the producers that this broker coordinates, by producer
// id: which partitions the records of their transactions may be written to. The
// zero value is ready.
type OpenTransactions struct {
	byProducer sync.Map // int64 to *openTransaction
	complete   sync.Map // the partitions of __transaction_state, int32, whose transactions are all here
}

type openTransaction struct {
	epoch      int16
	partitions []wire.TopicPartition
	state      int32 // the partition of __transaction_state
}

// Perform notes what a transaction's coordinator says.
func (o *OpenTransactions) Perform(statePartition int32, command any) {
	switch c := command.(type) {
	case txn.Opened:
		o.byProducer.Store(c.ID, &openTransaction{c.Epoch, c.Partitions, statePartition})
	case txn.Closed:
		o.byProducer.Store(c.ID, &openTransaction{c.Epoch, nil, statePartition})
	case txn.Forgotten:
		o.byProducer.Delete(c.Producer)
	case txn.AllTold:
		o.complete.Store(statePartition, true)
	}
}

// Unloaded forgets the transactions of a partition of __transaction_state.
func (o *OpenTransactions) Unloaded(statePartition int32) {
	o.complete.Delete(statePartition)
	o.byProducer.Range(func(id, t any) bool {
		if t.(*openTransaction).state == statePartition {
			o.byProducer.Delete(id)
		}
		return true
	})
}

// settled tells whether all transactions of a partition of __transaction_state
// are known here: not while it is loaded, nor while what was loaded waits to be
// committed.
func (o *OpenTransactions) settled(statePartition int32) bool {
	_, ok := o.complete.Load(statePartition)
	return ok
}

// verdict judges a record of a transaction: TRANSACTION_ABORTABLE if the
// transaction does not have the partition, INVALID_PRODUCER_EPOCH if the producer
// is fenced.
// known is false if this broker does not coordinate the producer.
func (o *OpenTransactions) verdict(p coordinator.Producer, at wire.TopicPartition) (code wire.Code, known bool) {
	v, ok := o.byProducer.Load(p.ID)
	if !ok {
		return wire.TransactionAbortable, false
	}
	switch t := v.(*openTransaction); {
	case t.epoch != p.Epoch:
		return wire.InvalidProducerEpoch, true
	case slices.Contains(t.partitions, at):
		return wire.None, true
	default:
		return wire.TransactionAbortable, true
	}
}

// Verification asks which of some partitions a producer's transaction has.
type Verification struct {
	TransactionalID string
	coordinator.Producer
	Partitions []wire.TopicPartition
}

// ErrNotVerified says that a transaction's coordinator can't tell what the
// transaction has: it is older than KIP-890. Then it is taken to have all.
var ErrNotVerified = errors.New("the coordinator does not verify transactions")

// verdict is what is known of a producer's transaction and one partition.
type verdict struct {
	wire.TopicPartition
	code wire.Code
	// since is the end of the partition's log before it was asked, plus one: a
	// marker that came later has ended the transaction. 0: nothing was verified.
	since int64
}

// verify judges whether a producer's records may be written to partitions in a
// transaction (KIP-890): one that is open there goes on; a new one must have the
// partition. It fills in the codes, and blocks while another broker that
// coordinates the transaction is asked: what comes after on the connection must
// not be written before, as the producer counts its batches.
func (b *Broker) verify(id string, p coordinator.Producer, verdicts []verdict) {
	if !b.Config.Load().Bool("transaction.partition.verification.enable") {
		return
	}
	var ask []wire.TopicPartition
	for i := range verdicts {
		v := &verdicts[i]
		part := b.Replicas.Partition(v.TopicPartition)
		if part == nil || part.Log() == nil {
			continue // that is what the producer will be told
		}
		v.since = part.Log().EndOffset() + 1
		if part.Log().HasTransaction(p.ID, p.Epoch) {
			continue
		}
		code, known := b.OpenTransactions.verdict(p, v.TopicPartition)
		if !known {
			if code = b.unknownProducer(id); code == wire.TransactionAbortable {
				code, _ = b.OpenTransactions.verdict(p, v.TopicPartition) // it may have been told of meanwhile
			}
		}
		if v.code = code; code == wire.NotCoordinator {
			ask = append(ask, v.TopicPartition)
		}
	}
	if len(ask) == 0 {
		return
	}
	codes := b.askVerification(Verification{id, p, ask})
	for i := range verdicts {
		if verdicts[i].code == wire.NotCoordinator {
			verdicts[i].code, codes = codes[0], codes[1:]
		}
	}
}

// unknownProducer is the verdict on a producer that no transaction here has:
// NOT_COORDINATOR if another broker has to be asked.
func (b *Broker) unknownProducer(id string) wire.Code {
	partition, ok := b.transactionPartition(id)
	leads, _ := b.Transactions.Leads(partition)
	switch {
	case !ok:
		return wire.TransactionAbortable
	case !leads:
		return wire.NotCoordinator
	case !b.OpenTransactions.settled(partition):
		return wire.CoordinatorLoadInProgress
	}
	return wire.TransactionAbortable
}

// askVerification asks the coordinator on another broker; there is a code for
// each partition.
func (b *Broker) askVerification(v Verification) []wire.Code {
	fail := func(code wire.Code) []wire.Code { return slices.Repeat([]wire.Code{code}, len(v.Partitions)) }
	partition, _ := b.transactionPartition(v.TransactionalID)
	at := b.Metadata.Partition(TransactionsTopic, partition)
	if at == nil || at.Leader < 0 || at.Leader == b.ID { // or this broker does not know yet that it is
		return fail(wire.CoordinatorNotAvailable)
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.Config.Load().Duration("request.timeout.ms"))
	defer cancel()
	codes, err := b.VerifyTransaction(ctx, at.Leader, v)
	switch {
	case errors.Is(err, ErrNotVerified):
		return fail(wire.None)
	case err != nil || len(codes) != len(v.Partitions):
		b.Log.Info("a transaction's coordinator was asked and did not answer", "transactional_id", v.TransactionalID, "broker", at.Leader, "err", err)
		return fail(wire.NetworkException)
	}
	return codes
}

// toldToProducer is a verdict's code as a producer is told it: abortable is
// whether it knows TRANSACTION_ABORTABLE.
func toldToProducer(code wire.Code, abortable bool) wire.Code {
	switch code {
	case wire.TransactionAbortable:
		if !abortable {
			return wire.InvalidTxnState
		}
	case wire.ProducerFenced:
		return wire.InvalidProducerEpoch
	case wire.ConcurrentTransactions, wire.NetworkException, wire.CoordinatorLoadInProgress, wire.CoordinatorNotAvailable, wire.NotCoordinator:
		return wire.NotEnoughReplicas // which every producer tries again after
	}
	return code
}

// verifying is what is known of the partitions of a Produce request's transaction.
type verifying []verdict

// of returns the verdict on a partition, a zero one if none was asked for.
func (v *verifying) of(topic []byte, index int32) verdict {
	if v == nil {
		return verdict{}
	}
	for i := range *v {
		if at := &(*v)[i]; at.Partition == index && at.Topic == string(topic) {
			return *at
		}
	}
	return verdict{}
}

// verifyProduce judges all partitions of a transactional request at once. The
// records of more than one producer are refused: they can't be of one transaction.
func (b *Broker) verifyProduce(q *Request, id string) (*verifying, refusal) {
	var producer coordinator.Producer
	var v verifying
	several := false
	walkProduce(q, func(topic []byte, index int32, records []byte) {
		r := record.Batch(records)
		if !ofTransaction(records) || !r.HasProducerID() {
			return
		}
		p := coordinator.Producer{ID: r.ProducerID(), Epoch: r.ProducerEpoch()}
		several = several || len(v) > 0 && p != producer
		producer = p
		v = append(v, verdict{TopicPartition: wire.TopicPartition{Topic: string(topic), Partition: index}})
	})
	if several {
		return nil, refusal{wire.InvalidProducerIDMapping, &record.Error{Message: "Transactional records contained more than one producer ID"}}
	}
	b.verify(id, producer, v)
	for i := range v {
		v[i].code = toldToProducer(v[i].code, q.Version >= 11)
	}
	return &v, refusal{}
}
