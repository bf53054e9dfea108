package broker

import (
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// tellOfDirFailure has the controller ask for the state of every replica here,
// and so find leaders elsewhere for those that are gone (KIP-112). It returns at
// once.
func (b *Broker) tellOfDirFailure() {
	if b.ctx.Err() != nil {
		return
	}
	b.running.Go(func() {
		for said := false; ; said = true {
			err := b.zk.Retry(b.ctx, func() error {
				_, _, err := b.zk.Create(b.ctx, znode.LogDirEvents+"/"+znode.LogDirEventPrefix, znode.EncodeLogDirEvent(b.info.ID), zookeeper.PersistentSequential)
				return err
			})
			if err == nil || b.ctx.Err() != nil {
				return
			}
			if !said {
				b.log.Error("the controller can't be told of a failed log dir; trying again", "err", err)
			}
			pause(b.ctx, refusedPause)
		}
	})
}
