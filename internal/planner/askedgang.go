package planner

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ReadDemand reads what a task, a bundle or a placement group asks for: an object with bundles is a gang as a snapshot has it, without or with an
// id; all else is read by ReadRequest. The question then asks for one of the two. Errors are those of ReadPolicy.
func ReadDemand(text, name string) (model.Question, error) {
	in, err := argument(text, name, `an object of amounts such as {"CPU": 4, "GPU": 0.5}`)
	if err != nil {
		return model.Question{}, err
	}
	if bundles := in.object().member("bundles"); in.file.err == nil && len(bundles.raw) > 0 && bundles.raw[0] == '[' {
		gang, _ := in.gang()
		return model.Question{AskedGang: &gang}, in.file.strict()
	}
	request, err := ReadRequest(text, name)
	return model.Question{Demand: &request}, err
}

// gangLike explains the first gang in the order of planning that waits for the same, or one that is planned for beside those that wait.
func (a asking) gangLike(s model.Snapshot, asked raydemand.Gang) model.Explanation {
	p, given, out := a.decide(&s)
	same := func(g *gang) bool { return asksAs(g.Gang, &asked) }
	at, prefix := slices.IndexFunc(p.gangs, same), ""
	if at < 0 {
		prefix = "no gang waits for it in the snapshot; if one did: "
		asked.ID = ""
		s.Gangs = append(slices.Clone(s.Gangs), asked)
		p, given, out = a.decide(&s)
		at = slices.IndexFunc(p.gangs, same)
	}
	e := p.explainGang(p.gangs[at], given, &out)
	e.Message = prefix + e.Message
	return e
}
