package gpuinfo

import "fmt"

// XID is what is known of one number of NVIDIA's driver for a fault.
type XID struct {
	Number uint64
	// Meaning in a few words; empty where only the verdict is known.
	Meaning string
	// Fatal: the card is not to be used before it was reset or replaced. Else the application is at fault, or the card goes on working.
	Fatal bool
	// Source says who judges so.
	Source string
}

// Who judges XIDs. Where the two differ NVIDIA's own word counts.
const (
	pluginIgnores = "NVIDIA device plugin, health checks: an error of the application, after which the card is healthy"
	eksFatal      = "EKS node monitoring agent, list of fatal XIDs"
	xidGuide      = "NVIDIA, XID Errors"
)

// xids are those that somebody judged. What stands in no row is not called fatal: the device plugin, which takes every XID but a few for
// fatal, withdraws the card then, and allocatable below capacity tells.
var xids = []XID{
	{13, "graphics engine exception", false, pluginIgnores},
	{31, "memory page fault", false, pluginIgnores},
	{43, "the driver stopped the work of an application", false, pluginIgnores},
	{45, "preemptive cleanup after an earlier error", false, pluginIgnores},
	{46, "the card stopped processing", true, eksFatal},
	{48, "double-bit memory error", true, eksFatal},
	{54, "auxiliary power is not connected", true, eksFatal},
	{62, "internal micro-controller halt", true, eksFatal},
	// EKS has 63 among the fatal ones. The row is replaced at the next reset, which may wait; RemappedRows.Pending tells it as long.
	{63, "a memory row or page is to be replaced", false, xidGuide},
	{64, "a memory row or page could not be replaced", true, eksFatal},
	{68, "video decoder exception", false, pluginIgnores},
	{74, "NVLink error", true, eksFatal},
	{79, "the card has fallen off the bus", true, eksFatal},
	// The driver ended the work that met the error, and offlined the page.
	{94, "contained memory error", false, xidGuide},
	{95, "uncontained memory error", true, eksFatal},
	// EKS has 109 among the fatal ones.
	{109, "context switch timeout", false, pluginIgnores},
	{110, "security fault", true, eksFatal},
	{119, "the GPU system processor does not answer", true, eksFatal},
	{120, "error of the GPU system processor", true, eksFatal},
	{136, "", true, eksFatal},
	{140, "unrecovered memory error", true, eksFatal},
	{142, "", true, eksFatal},
	{143, "", true, eksFatal},
	{151, "", true, eksFatal},
	// 154 comes with another XID, and carries what the driver recommends.
	{154, "the recommended recovery action changed", false, xidGuide},
	{155, "", true, eksFatal},
	{156, "", true, eksFatal},
	{158, "", true, eksFatal},
}

// XIDOf looks a number up; false where nobody judged it.
func XIDOf(number uint64) (XID, bool) {
	for _, x := range xids {
		if x.Number == number {
			return x, true
		}
	}
	return XID{Number: number}, false
}

// XIDEvent is an XID that the driver told of.
type XIDEvent struct {
	XID
	// Card is the index of the card; nil where the driver does not say which.
	Card *int
	// Instance is the ID of the GPU instance that it happened in; nil on a whole card.
	Instance *uint32
}

// String writes XID 79: the card has fallen off the bus.
func (e XIDEvent) String() string {
	text := fmt.Sprintf("XID %d", e.Number)
	if e.Instance != nil {
		text += fmt.Sprintf(" in GPU instance %d", *e.Instance)
	}
	switch {
	case e.Meaning != "":
		return text + ": " + e.Meaning
	case e.Fatal:
		return text + ": fatal"
	}
	return text
}
