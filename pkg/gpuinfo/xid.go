package gpuinfo

import "fmt"

// XID describes one error number of NVIDIA's driver.
type XID struct {
	Number uint64
	// Meaning is a short description; empty if only the verdict is known.
	Meaning string
	// Fatal is true if Source lists the XID among those after which the card must not be used.
	Fatal bool
	// Source is the origin of the verdict.
	Source string
}

// The sources of verdicts. If they differ, NVIDIA's verdict applies. Meanings are from the same lists unless noted;
// most lists have none.
const (
	pluginIgnores = "NVIDIA device plugin, health checks: an error of the application, after which the card is healthy"
	eksFatal      = "EKS node monitoring agent, list of fatal XIDs"
	remappedRows  = "NVML, nvmlDeviceGetRemappedRows: a pending remapping does not affect future work on the GPU"
	unlisted      = "neither in the EKS node monitoring agent's list of fatal XIDs nor ignored by the device plugin: " +
		"logged; the card stays as it is"
)

// xids are the XIDs with a documented verdict. An XID without a row is not reported as fatal. The device plugin treats
// almost every XID as fatal and then withdraws the card, so allocatable is below capacity.
var xids = []XID{
	{13, "graphics engine exception", false, pluginIgnores}, // meaning: NVIDIA's Xid catalog
	{31, "", false, pluginIgnores},
	{43, "", false, pluginIgnores},
	{45, "", false, pluginIgnores},
	{46, "the card stopped processing", true, eksFatal}, // meaning: NVIDIA's Health Validation, Xid checks
	{48, "double-bit memory error", true, eksFatal},
	{54, "", true, eksFatal},
	{62, "", true, eksFatal},
	// EKS lists 63 as fatal, and NVIDIA does not. NVML's manual says that the reset can wait.
	{63, "a memory row is to be replaced", false, remappedRows},
	{64, "a memory row or page could not be replaced", true, eksFatal},
	{68, "", false, pluginIgnores},
	{74, "NVLink error", true, eksFatal},
	{79, "the card has fallen off the bus", true, eksFatal},
	{94, "contained memory error", false, unlisted},
	{95, "uncontained memory error", true, eksFatal},
	// EKS lists 109 as fatal.
	{109, "", false, pluginIgnores},
	{110, "", true, eksFatal},
	{119, "the GPU system processor does not answer", true, eksFatal},
	{120, "error of the GPU system processor", true, eksFatal},
	{136, "", true, eksFatal},
	{140, "unrecovered memory error", true, eksFatal},
	{142, "", true, eksFatal},
	{143, "", true, eksFatal},
	{151, "", true, eksFatal},
	{154, "carries the recommended recovery action", false, unlisted},
	{155, "", true, eksFatal},
	{156, "", true, eksFatal},
	{158, "", true, eksFatal},
}

// XIDOf returns the XID with this number, and false if no source has a verdict for it.
func XIDOf(number uint64) (XID, bool) {
	for _, x := range xids {
		if x.Number == number {
			return x, true
		}
	}
	return XID{Number: number}, false
}

// XIDEvent is an XID that the driver reported.
type XIDEvent struct {
	XID
	// Card is the index of the card; nil if the driver does not report it.
	Card *int
	// Instance is the ID of the GPU instance in which the XID occurred; nil on a whole card.
	Instance *uint32
}

// String returns text such as "XID 79: the card has fallen off the bus".
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
