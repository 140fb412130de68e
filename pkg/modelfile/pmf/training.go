package pmf

import "slices"

// statuses are the states of a training.
var statuses = []string{"pending", "running", "finished", "failed"}

// moment is a time or an epoch of a training, and where it stands.
type moment struct {
	name  string
	value value
	at    *float64 // seconds of a time, an epoch's number; nil where there is none
}

// set reports whether a moment is there, be it of a wrong type.
func (m moment) set() bool { return !m.value.isNull() }

// readTraining reads the training, and checks what its values say of each other.
func (m *metadata) readTraining(v value) {
	keys := []string{
		"status", "start_time", "latest_time", "end_time", "start_epoch", "latest_epoch", "end_epoch", "latest",
		"checkpoints",
	}
	f := v.section(keys, nil)
	t := &m.model.Training
	if s, ok := f["status"].text(); ok {
		if t.Status = s; !slices.Contains(statuses, s) {
			f["status"].violate(RuleStatus, "is %s, and must be pending, running, finished or failed", short(s))
		}
	}
	var times, epochs [3]moment
	for i, which := range []string{"start", "latest", "end"} {
		v := f[which+"_time"]
		times[i] = moment{which + "_time", v, v.number()}
		v = f[which+"_epoch"]
		epochs[i] = moment{name: which + "_epoch", value: v}
		if n := v.epoch(true); n != nil {
			at := float64(*n)
			epochs[i].at = &at
			if which == "latest" {
				t.LatestEpoch = n
			}
		}
	}
	for i := range times {
		checkPair(times[i], epochs[i])
		checkPair(epochs[i], times[i])
	}
	checkMoments(times, t.Status)
	checkMoments(epochs, t.Status)
	m.readCheckpoints(f["checkpoints"])
	m.checkLatest(f["latest"])
}

// epoch returns an epoch, which is 0 or more, nil where there is none.
func (v value) epoch(orNull bool) *int64 {
	n := v.integer(orNull)
	if n != nil && *n < 0 {
		v.violate(RuleEpoch, "is %d, and must be 0 or more", *n)
		return nil
	}
	return n
}

// checkPair wants a time with an epoch, and the other way round.
func checkPair(one, other moment) {
	if one.set() && !other.set() {
		one.value.violate(RulePair, "is given without %s", other.name)
	}
}

// checkMoments wants start, latest and end in order, none of them without
// those before it, none at all in a training that has not begun, and no end in
// one that has not ended.
func checkMoments(list [3]moment, status string) {
	start, latest, end := list[0], list[1], list[2]
	for _, m := range list {
		if m.set() && !start.set() {
			m.value.violate(RuleNoStart, "is given without %s", start.name)
		}
		if m.set() && status == "pending" {
			m.value.violate(RulePending, "is given, and the training is pending")
		}
	}
	if end.set() && !latest.set() {
		end.value.violate(RuleNoLatest, "is given without %s", latest.name)
	}
	if end.set() && status == "running" {
		end.value.violate(RuleEndStatus, "is given, and the training is running")
	}
	checkOrder(start, latest)
	checkOrder(latest, end)
}

// checkOrder wants one moment not to be behind another.
func checkOrder(first, then moment) {
	if first.at != nil && then.at != nil && *first.at > *then.at {
		then.value.violate(RuleOrder, "is %s, before %s, %s",
			short(then.value.node.Value), first.name, short(first.value.node.Value))
	}
}

// readCheckpoints reads the registered checkpoints. None is of an epoch after the
// latest.
func (m *metadata) readCheckpoints(v value) {
	for _, e := range v.entries() {
		if !checkReference(e.key) {
			continue
		}
		fields := e.value.section([]string{"epoch", "path", "hash"}, nil)
		c := checkpoint{located: readFile(fields), reference: e.key.identity()}
		m.checkpoints = append(m.checkpoints, c)
		registered := Checkpoint{File: c.File, Reference: e.key.reference(), identity: c.reference}
		m.model.Checkpoints = append(m.model.Checkpoints, registered)
		epoch, latest := fields["epoch"].epoch(false), m.model.Training.LatestEpoch
		if epoch != nil && latest != nil && *epoch > *latest {
			e.key.violate(RuleCheckpointEpoch, "has the epoch %d, which is after latest_epoch, %d", *epoch, *latest)
		}
	}
}

// checkLatest wants a registered checkpoint, or null.
func (m *metadata) checkLatest(v value) {
	if v.isNull() || !checkReference(v) {
		return
	}
	m.model.Training.Latest = v.reference()
	if !m.registered(v) {
		v.violate(RuleLatest, "is %s, which is no registered checkpoint", v.describe())
	}
}

// registered reports whether a reference is that of a checkpoint.
func (m *metadata) registered(reference value) bool {
	id := reference.identity()
	return slices.ContainsFunc(m.checkpoints, func(c checkpoint) bool { return c.reference == id })
}
