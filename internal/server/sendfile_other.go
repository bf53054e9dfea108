//go:build !linux

package server

import "errors"

// Elsewhere file bytes are copied: sendfile's interface differs on each system.
const canSendfile = false

type fileSender struct{}

func (*fileSender) init() {}

func (s *sender) sendfile(uintptr, int64, int) error { return errors.ErrUnsupported }

func (s *sender) cork(bool) {}
