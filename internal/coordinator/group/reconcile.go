package group

// reconcile moves a member one step towards its target: it returns the member
// itself if there is nothing to do, else what it becomes
// (CurrentAssignmentBuilder). A member first gives up what is not its own any
// more, then takes the target's epoch, and gets what others have given up.
func (c *consumerGroup) reconcile(m *consumerMember, epoch int32, target, has assignment, told bool, replaces string) *consumerMember {
	switch {
	case m.state == reconciled && m.epoch == epoch:
		return m
	case m.state == unrevoked && stillHas(m.revoking, has, told):
		return m
	case m.state == unrevoked:
		return c.next(m, m.epoch+1, epoch, target, has, told, replaces)
	}
	return c.next(m, m.epoch, epoch, target, has, told, replaces)
}

// stillHas tells whether a member has any of the partitions that it must give
// up: if it does not tell what it has, it may.
func stillHas(revoking, has assignment, told bool) bool {
	if !told {
		return true
	}
	still := false
	has.each(func(p owned) { still = still || revoking.has(p) })
	return still
}

func (c *consumerGroup) next(m *consumerMember, current, epoch int32, target, has assignment, told bool, replaces string) *consumerMember {
	keeps := m.partitions.where(target.has)
	revoking := m.partitions.where(func(p owned) bool { return !target.has(p) })
	waits := false
	free := target.where(func(p owned) bool {
		if keeps.has(p) {
			return false
		}
		owner, taken := c.owners[p]
		taken = taken && owner != replaces
		waits = waits || taken
		return !taken
	})
	n := *m
	n.previous = m.epoch
	n.partitions, n.revoking = keeps, nil
	switch {
	case revoking.count() > 0 && stillHas(revoking, has, told):
		n.state, n.revoking = unrevoked, revoking
		n.epoch = current
		if n.epoch == m.epoch {
			n.previous = m.previous
		}
		return n.orSame(m)
	case free.count() > 0:
		n.partitions = keeps.with(free)
	}
	n.state, n.epoch = reconciled, epoch
	if waits {
		n.state = unreleased
	}
	if n.epoch == m.epoch {
		n.previous = m.previous
	}
	return n.orSame(m)
}

// orSame returns m if n is no different.
func (n *consumerMember) orSame(m *consumerMember) *consumerMember {
	if n.epoch == m.epoch && n.previous == m.previous && n.state == m.state && n.partitions.equal(m.partitions) && n.revoking.equal(m.revoking) {
		return m
	}
	return n
}
