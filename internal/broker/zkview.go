package broker

import (
	"context"
	"errors"

	"barnabas/internal/jute"
	"barnabas/internal/zookeeper"
)

// zkView is the ZooKeeper client as the API handlers want it: each call bridges
// lost connections.
type zkView struct{ c *zookeeper.Client }

func (z zkView) Get(ctx context.Context, path string) (data []byte, stat jute.Stat, err error) {
	err = z.c.Retry(ctx, func() error {
		data, stat, err = z.c.Get(ctx, path)
		return err
	})
	return data, stat, err
}

func (z zkView) Exists(ctx context.Context, path string) (stat jute.Stat, ok bool, err error) {
	err = z.c.Retry(ctx, func() error {
		stat, ok, err = z.c.Exists(ctx, path)
		return err
	})
	return stat, ok, err
}

func (z zkView) Children(ctx context.Context, path string) (names []string, err error) {
	err = z.c.Retry(ctx, func() error {
		names, _, err = z.c.Children(ctx, path)
		return err
	})
	return names, err
}

func (z zkView) Set(ctx context.Context, path string, data []byte, version int32) (stat jute.Stat, err error) {
	err = z.c.Retry(ctx, func() error {
		stat, err = z.c.Set(ctx, path, data, version)
		return err
	})
	return stat, err
}

func (z zkView) Delete(ctx context.Context, path string, version int32) error {
	again := false
	return z.c.Retry(ctx, func() error {
		err := z.c.Delete(ctx, path, version)
		if again && errors.Is(err, jute.ErrNoNode) {
			return nil // the try whose answer was lost did it
		}
		again = true
		return err
	})
}

func (z zkView) CreateRecursive(ctx context.Context, path string, data []byte) error {
	return z.c.Retry(ctx, func() error {
		_, _, err := z.c.CreateRecursive(ctx, path, data, zookeeper.Persistent)
		return err
	})
}

// CreateSequential may make two nodes when an answer is lost; a notification
// too many does no harm.
func (z zkView) CreateSequential(ctx context.Context, prefix string, data []byte) (path string, err error) {
	err = z.c.Retry(ctx, func() error {
		path, _, err = z.c.Create(ctx, prefix, data, zookeeper.PersistentSequential)
		return err
	})
	return path, err
}

func (z zkView) SetChecked(ctx context.Context, checked string, version int32, path string, data []byte) error {
	return z.c.Retry(ctx, func() error {
		_, err := z.c.Multi(ctx, zookeeper.CheckOp(checked, version), zookeeper.SetOp(path, data, zookeeper.AnyVersion))
		return err
	})
}
