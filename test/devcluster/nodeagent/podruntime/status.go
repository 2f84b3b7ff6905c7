package podruntime

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status returns the pod's status as the kubelet would write it. Fields of others, such as PodScheduled and the QoS
// class, are those of current.
func (p *Pod) Status(current corev1.PodStatus) corev1.PodStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	status := *current.DeepCopy()
	status.StartTime = p.startTime.DeepCopy()
	status.HostIP, status.HostIPs = p.hostIP, []corev1.HostIP{{IP: p.hostIP}}
	status.PodIP, status.PodIPs = p.IP, []corev1.PodIP{{IP: p.IP}}
	status.InitContainerStatuses = statuses(p.init)
	status.ContainerStatuses = statuses(p.containers)
	status.Phase = p.phase()
	status.Conditions = p.mergeConditions(current.Conditions, status.Phase)
	return status
}

func statuses(containers []*Container) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for _, c := range containers {
		started := c.started
		status := corev1.ContainerStatus{
			Name:         c.spec.Name,
			Image:        c.spec.Image,
			ImageID:      "directory://" + c.spec.Image,
			State:        *c.state.DeepCopy(),
			RestartCount: c.restarts,
			Ready:        c.ready,
			Started:      &started,
		}
		if c.state.Terminated == nil || c.restarts > 0 {
			status.LastTerminationState = *c.last.DeepCopy()
		}
		if c.state.Waiting == nil {
			status.ContainerID = c.id()
		}
		if c.state.Terminated != nil && c.state.Terminated.ExitCode == 0 && c.finished {
			status.Ready = slices.Contains(c.pod.init, c) // a finished init container counts as ready
		}
		list = append(list, status)
	}
	return list
}

// phase follows the kubelet's rules. A container between two runs counts as running.
func (p *Pod) phase() corev1.PodPhase {
	if p.initFailed {
		return corev1.PodFailed
	}
	if !p.initialized {
		return corev1.PodPending
	}
	begun, ended, failed := 0, 0, 0
	for _, c := range p.containers {
		terminated := c.state.Terminated
		if c.state.Running != nil || terminated != nil || c.last.Terminated != nil {
			begun++
		}
		if terminated != nil && (c.finished || p.stopping) {
			ended++
			if terminated.ExitCode != 0 {
				failed++
			}
		}
	}
	switch {
	case ended == len(p.containers) && failed > 0:
		return corev1.PodFailed
	case ended == len(p.containers):
		return corev1.PodSucceeded
	case begun > 0:
		return corev1.PodRunning
	}
	return corev1.PodPending
}

// mergeConditions replaces the conditions that a kubelet owns. The transition time is when it first sees a new status.
func (p *Pod) mergeConditions(current []corev1.PodCondition, phase corev1.PodPhase) []corev1.PodCondition {
	var merged []corev1.PodCondition
	own := p.ownConditions(phase)
	for _, condition := range current {
		if _, ours := own[condition.Type]; !ours {
			merged = append(merged, condition)
		}
	}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	} {
		condition := own[kind]
		if before, ok := p.conditions[kind]; ok && before.Status == condition.Status {
			condition.LastTransitionTime = before.LastTransitionTime
		} else {
			condition.LastTransitionTime = metav1.Now()
		}
		p.conditions[kind] = condition
		merged = append(merged, condition)
	}
	return merged
}

func (p *Pod) ownConditions(phase corev1.PodPhase) map[corev1.PodConditionType]corev1.PodCondition {
	conditions := map[corev1.PodConditionType]corev1.PodCondition{}
	set := func(kind corev1.PodConditionType, holds bool, reason, message string) {
		condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue}
		if !holds {
			condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, reason, message
		}
		conditions[kind] = condition
	}
	set(corev1.PodReadyToStartContainers, p.prepared, "", p.problem)
	set(corev1.PodInitialized, p.initialized, "ContainersNotInitialized", "containers with incomplete status")
	unready := 0
	for _, c := range p.containers {
		if !c.ready {
			unready++
		}
	}
	ready := p.initialized && unready == 0
	reason := "ContainersNotReady"
	switch phase {
	case corev1.PodSucceeded:
		reason = "PodCompleted"
	case corev1.PodFailed:
		reason = "PodFailed"
	}
	message := fmt.Sprintf("%d of %d containers are not ready", unready, len(p.containers))
	set(corev1.ContainersReady, ready, reason, message)
	set(corev1.PodReady, ready, reason, message)
	return conditions
}
