package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"barnabas/internal/jute"
	"barnabas/internal/storage"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// identify finds out who this broker is and which cluster it belongs to: from
// the configuration, meta.properties and ZooKeeper, which must agree.
func (b *Broker) identify(ctx context.Context) error {
	c := b.config.Load()
	meta, err := storage.ReadIdentity(vfs.OS, c.LogDirs())
	if err != nil {
		return err
	}
	if err := b.clusterID(ctx, meta); err != nil {
		return err
	}
	switch {
	case c.ID() >= 0 && meta.BrokerID >= 0 && c.ID() != meta.BrokerID:
		return fmt.Errorf("broker.id is %d, but meta.properties in %s says that its data belongs to broker.id %d: "+
			"set broker.id=%d, or use other log.dirs", c.ID(), strings.Join(c.LogDirs(), ","), meta.BrokerID, meta.BrokerID)
	case c.ID() >= 0:
		b.info.ID = c.ID()
	case meta.BrokerID >= 0:
		b.info.ID = meta.BrokerID
	default:
		// The version of /brokers/seqid is the cluster's counter.
		stat, err := b.zk.Set(ctx, znode.BrokerSeqID, nil, -1)
		if err != nil {
			return fmt.Errorf("generating a broker.id: %w", err)
		}
		b.info.ID = znode.GeneratedBrokerID(stat.Version, c.Int32("reserved.broker.max.id"))
		b.log.Info("generated a broker.id", "broker.id", b.info.ID)
	}
	b.info.LogDirs = c.LogDirs()
	return nil
}

// clusterID reads /cluster/id, or makes it. A log dir of a cluster that
// ZooKeeper does not know is an error, before anything is written.
func (b *Broker) clusterID(ctx context.Context, meta storage.Identity) error {
	data, _, err := b.zk.Get(ctx, znode.ClusterIDPath)
	switch {
	case errors.Is(err, jute.ErrNoNode) && meta.ClusterID != "":
		return fmt.Errorf("the log dirs belong to cluster %s (meta.properties), but ZooKeeper (%s) knows no cluster: its data was lost, or this is another one. "+
			"Bring ZooKeeper's data back; or, if it is lost for good, create /cluster/id with %s, and the topics will have to be made again; or use other log.dirs",
			meta.ClusterID, b.zkName(), znode.EncodeClusterID(meta.ClusterID))
	case errors.Is(err, jute.ErrNoNode):
		if err := b.makePaths(ctx); err != nil {
			return err
		}
		id := wire.NewUUID().String()
		if err := b.makeClusterID(ctx, id); err == nil {
			b.info.ClusterID = id
			return nil
		} else if !errors.Is(err, jute.ErrNodeExists) {
			return fmt.Errorf("ZooKeeper: making %s: %w", znode.ClusterIDPath, err)
		}
		// Another broker was first.
		if data, _, err = b.zk.Get(ctx, znode.ClusterIDPath); err != nil {
			return fmt.Errorf("ZooKeeper: reading %s: %w", znode.ClusterIDPath, err)
		}
	case err != nil:
		return fmt.Errorf("ZooKeeper: reading %s: %w", znode.ClusterIDPath, err)
	default:
		if err := b.makePaths(ctx); err != nil {
			return err
		}
	}
	if b.info.ClusterID, err = znode.DecodeClusterID(data); err != nil {
		return fmt.Errorf("ZooKeeper: %s holds %q: %w", znode.ClusterIDPath, data, err)
	}
	if meta.ClusterID != "" && meta.ClusterID != b.info.ClusterID {
		return fmt.Errorf("the log dirs belong to cluster %s (meta.properties), ZooKeeper (%s) to cluster %s: one of the two was reset or is another cluster's. "+
			"Point zookeeper.connect (or keeper.dir) at the ZooKeeper of cluster %s; or, to start anew with this ZooKeeper, use empty log.dirs",
			meta.ClusterID, b.zkName(), b.info.ClusterID, meta.ClusterID)
	}
	return nil
}

func (b *Broker) makeClusterID(ctx context.Context, id string) error {
	return b.zk.Retry(ctx, func() error {
		_, _, err := b.zk.CreateRecursive(ctx, znode.ClusterIDPath, znode.EncodeClusterID(id), zookeeper.Persistent)
		return err
	})
}

func (b *Broker) zkName() string {
	if b.keeper != nil {
		return "the embedded one, in keeper.dir " + absolute(b.config.Load().String("keeper.dir"))
	}
	return b.config.Load().String("zookeeper.connect")
}
