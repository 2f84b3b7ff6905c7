package simray

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/api/proto/raypb"
)

// driver is a driver that has connected.
type driver struct {
	namespace, entrypoint string
	dead                  bool
}

// metadata is that of a job that was submitted, if the entrypoint says with which submission id: python x.py --id=ID.
func (d *driver) metadata() map[string]string {
	_, id, submitted := strings.Cut(d.entrypoint, " --id=")
	if !submitted {
		return nil
	}
	return map[string]string{"job_submission_id": id}
}

// Connect adds a driver and returns a function that ends it.
func (h *Head) Connect(namespace, entrypoint string) (end func()) {
	d := &driver{namespace: namespace, entrypoint: entrypoint}
	h.look(func(c *cluster, _ time.Time) { c.drivers = append(c.drivers, d) })
	return func() { h.look(func(*cluster, time.Time) { d.dead = true }) }
}

// Connected reports whether a driver is connected.
func (h *Head) Connected() (connected bool) {
	h.look(func(c *cluster, _ time.Time) {
		connected = slices.ContainsFunc(c.drivers, func(d *driver) bool { return !d.dead })
	})
	return connected
}

type jobInfoService struct {
	raypb.UnimplementedJobInfoGcsServiceServer
	head *Head
}

// GetAllJobInfo lists the drivers, those that have ended too.
func (s jobInfoService) GetAllJobInfo(
	context.Context, *raypb.GetAllJobInfoRequest,
) (*raypb.GetAllJobInfoReply, error) {
	reply := &raypb.GetAllJobInfoReply{Status: &raypb.GcsStatus{}}
	s.head.look(func(c *cluster, _ time.Time) {
		for i, d := range c.drivers {
			reply.JobInfoList = append(reply.JobInfoList, &raypb.JobTableData{
				JobId:  binary.LittleEndian.AppendUint32(nil, uint32(i+1)), //nolint:gosec // a handful
				IsDead: d.dead, Entrypoint: d.entrypoint,
				Config: &raypb.JobConfig{RayNamespace: d.namespace, Metadata: d.metadata()},
			})
		}
	})
	return reply, nil
}

type placementGroupService struct {
	raypb.UnimplementedPlacementGroupInfoGcsServiceServer
	head *Head
}

// GetAllPlacementGroup lists the placement groups. A real GCS lists removed ones for a while, as this one always does.
func (s placementGroupService) GetAllPlacementGroup(
	context.Context, *raypb.GetAllPlacementGroupRequest,
) (*raypb.GetAllPlacementGroupReply, error) {
	reply := &raypb.GetAllPlacementGroupReply{Status: &raypb.GcsStatus{}}
	s.head.look(func(c *cluster, _ time.Time) {
		for _, w := range c.work {
			if len(w.gang.Bundles) == 0 || w.over {
				continue
			}
			state := raypb.PlacementGroupTableData_PENDING
			if w.parts[0].on != nil {
				state = raypb.PlacementGroupTableData_CREATED
			}
			reply.PlacementGroupTableData = append(reply.PlacementGroupTableData,
				&raypb.PlacementGroupTableData{PlacementGroupId: []byte(w.gangID), State: state})
		}
	})
	reply.PlacementGroupTableData = append(reply.PlacementGroupTableData,
		&raypb.PlacementGroupTableData{PlacementGroupId: []byte{255}, State: raypb.PlacementGroupTableData_REMOVED})
	return reply, nil
}
