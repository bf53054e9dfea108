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
			reasons = append(reasons, fmt.Sprintf("Partition %d is being reassigned to %v: in sync are %v, not yet %v; live of the new ones are %v.",
				p.id, p.target(), p.lead.ISR, without(p.target(), p.lead.ISR), filter(p.adding, func(id int32) bool { return m.online(id, p) })))
		}
		if !t.deletion && p.state != partitionOnline {
			reasons = append(reasons, fmt.Sprintf("Partition %d has no leader: %s. Replicas %v, in sync when last written %v, live brokers %v.",
				p.id, p.unready, p.replicas, p.lead.ISR, m.brokerIDs()))
		}
	}
	return reasons
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
