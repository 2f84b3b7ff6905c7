package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/simray"
)

// headsCommand runs the simulated heads, in a process of their own so that their cost counts separately.
const headsCommand = "heads"

// burst is the resource that only the workers of the group burst have.
const burst = "burst"

// order is one line to the process of the heads.
type order struct {
	// Do is start, submit, join, leave or replies.
	Do      string
	Cluster int
	// Workers is how many workers a head has at the start, and Tasks how many tasks to submit.
	Workers, Tasks int
	Pod, IP        string
}

// heads is the process of the simulated heads.
type heads struct {
	cmd *exec.Cmd
	mu  sync.Mutex // guards what follows
	in  *json.Encoder
	out *bufio.Scanner
}

func startHeads() (*heads, error) {
	cmd := exec.Command("/proc/self/exe", headsCommand)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the heads: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the heads: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the heads: %w", err)
	}
	return &heads{cmd: cmd, in: json.NewEncoder(in), out: bufio.NewScanner(out)}, nil
}

// do sends an order and waits until it is carried out.
func (h *heads) do(o order) error {
	answer, err := h.ask(o)
	if err == nil && answer != "ok" {
		err = fmt.Errorf("%s of head %d: %s", o.Do, o.Cluster, answer)
	}
	return err
}

// replies returns how often all heads together have told their state.
func (h *heads) replies() (int64, error) {
	answer, err := h.ask(order{Do: "replies"})
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(answer, 10, 64)
}

// ask sends an order and returns the answer.
func (h *heads) ask(o order) (answer string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.in.Encode(o); err != nil {
		return "", fmt.Errorf("%s of head %d: %w", o.Do, o.Cluster, err)
	}
	if !h.out.Scan() {
		return "", fmt.Errorf("%s of head %d: the process of the heads has ended: %w", o.Do, o.Cluster, h.out.Err())
	}
	return h.out.Text(), nil
}

// close ends the process; it also ends when its input does.
func (h *heads) close() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

// headAddress is the address of a RayCluster's head.
func headAddress(cluster int) string { return fmt.Sprintf("127.80.%d.%d", cluster/250, 1+cluster%250) }

func clusterName(cluster int) string { return fmt.Sprintf("cluster-%04d", cluster) }

func workerName(cluster, worker int) string {
	return fmt.Sprintf("%s-cpu-worker-%03d", clusterName(cluster), worker)
}

func workerAddress(cluster, worker int) string {
	return fmt.Sprintf("10.%d.%d.%d", cluster>>8, cluster&255, 1+worker)
}

// simulated is one head with the ids of its nodes by pod.
type simulated struct {
	*simray.Head
	ids map[string]raydemand.NodeID
}

// serveHeads carries orders out until its input ends.
func serveHeads(in io.Reader, out io.Writer) error {
	all := map[int]*simulated{}
	for orders := json.NewDecoder(in); ; {
		var o order
		if err := orders.Decode(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading an order: %w", err)
		}
		answer := "ok"
		if o.Do == "replies" {
			answer = strconv.FormatInt(repliesOf(all), 10)
		} else if err := carryOut(all, o); err != nil {
			answer = err.Error()
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return fmt.Errorf("answering an order: %w", err)
		}
	}
}

// repliesOf sums the versions of the states, because each reply has the next one. Reading them counts as replies.
func repliesOf(all map[int]*simulated) (sum int64) {
	for _, head := range all {
		sum += head.State().GetClusterResourceStateVersion()
	}
	return sum
}

func carryOut(all map[int]*simulated, o order) error {
	head := all[o.Cluster]
	switch o.Do {
	case "start":
		head, err := startHead(o)
		all[o.Cluster] = head
		return err
	case "submit":
		for range o.Tasks {
			head.Submit(simray.Task{
				Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One, burst: raydemand.One},
				Runs:   2 * time.Second,
			})
		}
	case "join":
		head.ids[o.Pod] = head.AddNode(simray.Node{Instance: o.Pod, Group: burst, IP: o.IP,
			Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(8), burst: raydemand.One}})
	case "leave":
		if id, joined := head.ids[o.Pod]; joined {
			delete(head.ids, o.Pod)
			head.KillNode(id)
			head.Forget()
		}
	}
	return nil
}

func startHead(o order) (*simulated, error) {
	ip := headAddress(o.Cluster)
	head, err := simray.Start(simray.Options{Address: ip + ":6379",
		Head: simray.Node{Instance: clusterName(o.Cluster) + "-head", IP: ip}})
	if err != nil {
		return nil, err
	}
	for worker := range o.Workers {
		head.AddNode(simray.Node{Instance: workerName(o.Cluster, worker), Group: "cpu",
			IP: workerAddress(o.Cluster, worker),
			Resources: raydemand.Bundle{
				raydemand.CPU:         raydemand.Whole(8),
				raydemand.Memory:      raydemand.Whole(32 << 30),
				"object_store_memory": raydemand.Whole(9 << 30),
			}})
	}
	return &simulated{head, map[string]raydemand.NodeID{}}, nil
}
