package pmf

import "slices"

// statuses are the states of a training.
var statuses = []string{"pending", "running", "finished", "failed"}

// moment is a time or an epoch of a training, and where it stands.
type moment struct {
	name  string
	value value
	set   bool    // is there, and not null
	known bool    // and of its type: at counts
	at    float64 // times: seconds; epochs: their number
}

// readTraining reads the training, and checks what its values say of each other.
func (m *metadata) readTraining(v value) {
	keys := []string{
		"status", "start_time", "latest_time", "end_time", "start_epoch", "latest_epoch", "end_epoch", "latest", "checkpoints",
	}
	f := v.section(keys, nil)
	t := &m.model.Training
	if s, ok := f["status"].text(); ok {
		if t.Status = s; !slices.Contains(statuses, s) {
			f["status"].violate(RuleStatus, "got %s, want pending, running, finished or failed", short(s))
		}
	}
	t.StartTime, t.LatestTime, t.EndTime = f["start_time"].number(), f["latest_time"].number(), f["end_time"].number()
	t.StartEpoch, t.LatestEpoch, t.EndEpoch = f["start_epoch"].epoch(true), f["latest_epoch"].epoch(true), f["end_epoch"].epoch(true)
	m.readCheckpoints(f["checkpoints"])
	times := []moment{timeOf("start_time", f, t.StartTime), timeOf("latest_time", f, t.LatestTime), timeOf("end_time", f, t.EndTime)}
	epochs := []moment{epochOf("start_epoch", f, t.StartEpoch), epochOf("latest_epoch", f, t.LatestEpoch), epochOf("end_epoch", f, t.EndEpoch)}
	for i := range times {
		checkPair(times[i], epochs[i])
		checkPair(epochs[i], times[i])
	}
	for _, list := range [][]moment{times, epochs} {
		checkMoments(list, t.Status)
	}
	m.checkLatest(f["latest"])
	for _, c := range m.checkpoints {
		if c.epoch != nil && t.LatestEpoch != nil && *c.epoch > *t.LatestEpoch {
			c.at.violate(RuleCheckpointEpoch, "got the epoch %d, want at most latest_epoch, %d", *c.epoch, *t.LatestEpoch)
		}
	}
}

// epoch returns an epoch, which is 0 or more, nil where there is none.
func (v value) epoch(orNull bool) *int64 {
	n := v.integer(orNull)
	if n != nil && *n < 0 {
		v.violate(RuleEpoch, "got %d, want 0 or more", *n)
		return nil
	}
	return n
}

func timeOf(name string, f map[string]value, at *float64) moment {
	m := moment{name: name, value: f[name], set: !f[name].isNull()}
	if at != nil {
		m.at, m.known = *at, true
	}
	return m
}

func epochOf(name string, f map[string]value, at *int64) moment {
	m := moment{name: name, value: f[name], set: !f[name].isNull()}
	if at != nil {
		m.at, m.known = float64(*at), true
	}
	return m
}

// checkPair wants a time with an epoch, and the other way round.
func checkPair(one, other moment) {
	if one.set && !other.set {
		one.value.violate(RulePair, "is given without %s", other.name)
	}
}

// checkMoments wants start, latest and end in order, none of them without
// those before it, none at all in a training that has not begun, and no end in
// one that has not ended.
func checkMoments(list []moment, status string) {
	start, latest, end := list[0], list[1], list[2]
	for _, m := range list {
		if m.set && !start.set {
			m.value.violate(RuleNoStart, "is given without %s", start.name)
		}
		if m.set && status == "pending" {
			m.value.violate(RulePending, "is given, and the training is pending")
		}
	}
	if end.set && !latest.set {
		end.value.violate(RuleNoLatest, "is given without %s", latest.name)
	}
	if end.set && status == "running" {
		end.value.violate(RuleEndStatus, "is given, and the training is running")
	}
	if start.known && latest.known && start.at > latest.at {
		latest.value.violate(RuleOrder, "got %s, before %s, %s", short(latest.value.node.Value), start.name, short(start.value.node.Value))
	}
	if latest.known && end.known && latest.at > end.at {
		end.value.violate(RuleOrder, "got %s, before %s, %s", short(end.value.node.Value), latest.name, short(latest.value.node.Value))
	}
}

// readCheckpoints reads the registered checkpoints.
func (m *metadata) readCheckpoints(v value) {
	for _, e := range v.entries() {
		if !checkReference(e.key) {
			continue
		}
		fields := e.value.section([]string{"epoch", "path", "hash"}, nil)
		c := checkpoint{located: readFile(fields), reference: e.key.identity(), at: e.key, epoch: fields["epoch"].epoch(false)}
		m.checkpoints = append(m.checkpoints, c)
		registered := Checkpoint{File: c.File, Reference: e.key.reference(), identity: c.reference}
		if c.epoch != nil {
			registered.Epoch = *c.epoch
		}
		m.model.Checkpoints = append(m.model.Checkpoints, registered)
	}
}

// checkLatest wants a registered checkpoint, or null.
func (m *metadata) checkLatest(v value) {
	if v.isNull() || !checkReference(v) {
		return
	}
	m.model.Training.Latest = v.reference()
	if !m.registered(v) {
		v.violate(RuleLatest, "got %s, which is no registered checkpoint", v.describe())
	}
}

// registered reports whether a reference is that of a checkpoint.
func (m *metadata) registered(reference value) bool {
	id := reference.identity()
	return slices.ContainsFunc(m.checkpoints, func(c checkpoint) bool { return c.reference == id })
}
