package core

import "fmt"

// why says what keeps a topic from its wanted state, a sentence each.
func (m *Machine) why(name string) []string {
	t := m.topics[name]
	switch {
	case m.unreadable[name]:
		return []string{"Its znode cannot be used: see the controller's log. It is read again when it changes, and can be deleted."}
	case t == nil:
		return []string{"The controller knows no such topic."}
	}
	reasons := []string{}
	if t.deletion {
		reasons = append(reasons, m.whyDeletion(t))
	}
	for _, id := range sortedKeys(t.skipped) {
		reasons = append(reasons, fmt.Sprintf("Partition %d is skipped: its replica list %s is impossible.", id, short(t.skipped[id].Replicas)))
	}
	for _, p := range t.ordered() {
		if p.moving() {
			reasons = append(reasons, fmt.Sprintf("Partition %d is being reassigned to %v: %s.", p.id, p.target(), m.whyMoving(p)))
		}
		if !t.deletion && p.state != partitionOnline {
			reasons = append(reasons, m.whyLeaderless(p))
		}
	}
	return reasons
}

// whyMoving says which replicas a reassignment waits for.
func (m *Machine) whyMoving(p *partition) string {
	wait := without(p.target(), p.lead.ISR)
	if len(wait) == 0 {
		return "it is about to end"
	}
	why := fmt.Sprintf("it waits until replicas %v are in sync", wait)
	if dead := filter(wait, func(id int32) bool { return !m.online(id, p) }); len(dead) > 0 {
		why += fmt.Sprintf("; brokers %v are not live, or their log directories have failed", dead)
	}
	return why
}

// whyLeaderless says who has to come back before a partition has a leader.
func (m *Machine) whyLeaderless(p *partition) string {
	need := p.lead.ISR
	if !p.led {
		need = p.replicas
	}
	return fmt.Sprintf("Partition %d has no leader: %s. One of brokers %v has to come back; replicas %v, live brokers %v.",
		p.id, p.unready, need, p.replicas, m.brokerIDs())
}

func (m *Machine) whyDeletion(t *topic) string {
	switch {
	case !t.started && m.held(t):
		return "Its deletion waits for a reassignment, which can be cancelled."
	case t.ineligible != "":
		return fmt.Sprintf("Its deletion waits: %s (brokers %v)%s.", t.ineligible, brokersOf(t.replicasIn(replicaDeletionIneligible)), m.whyNotForget(t))
	}
	return fmt.Sprintf("It is being deleted: brokers %v have not answered yet.", brokersOf(t.replicasIn(replicaDeletionStarted)))
}
