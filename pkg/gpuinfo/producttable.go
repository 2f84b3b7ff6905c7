package gpuinfo

// board describes how a kind of card partitions its memory. The card is an axis of units. An instance occupies a
// contiguous range of units that begins at one of the starts of its shape.
type board struct {
	units int
	// slices is the number of compute slices of a whole card.
	slices int
	source string
	// shapes are in the order in which productTable lists profiles.
	shapes []shape
}

// shape holds the properties of a profile that all products of a board share.
type shape struct {
	// slices counts compute slices; size is in units of the axis.
	slices, size int
	starts       []int
	// most is the maximum number of instances on one card.
	most int
}

// sevenSlices describes the boards from A100 to GB300. The lgipp output is from A100 40/80, H100 80 and H100 NVL. The
// tables of go-nvml and of the GPU operator agree for H100 and GB200. For H200, B200, B300 and GB300, only the counts
// in the MUG and in mig-parted are available; they agree with these placements.
var sevenSlices = &board{8, 7, "nvidia-smi mig -lgipp and -lgip on real cards", []shape{
	{1, 1, []int{0, 1, 2, 3, 4, 5, 6}, 7}, // 1g
	{1, 1, []int{0, 1, 2, 3, 4, 5, 6}, 1}, // 1g+me
	// "1g REV2": one compute slice with twice the memory.
	{1, 2, []int{0, 2, 4, 6}, 4}, // 1g double
	{2, 2, []int{0, 2, 4}, 3},    // 2g
	{3, 4, []int{0, 4}, 2},       // 3g
	{4, 4, []int{0}, 1},          // 4g
	{7, 8, []int{0}, 1},          // 7g
}}

// fourSlices describes the A30. Very old drivers print the starts 0, 1, 4, 5 for 1g, which are obsolete.
var fourSlices = &board{4, 4, "nvidia-smi mig -lgipp and -lgip on real cards", []shape{
	{1, 1, []int{0, 1, 2, 3}, 4}, // 1g
	{1, 1, []int{0, 1, 2, 3}, 1}, // 1g+me
	{2, 2, []int{0, 2}, 2},       // 2g
	{2, 2, []int{0, 2}, 1},       // 2g+me
	{4, 4, []int{0}, 1},          // 4g
}}

// fourSlicesPro describes the RTX PRO 6000 Blackwell.
var fourSlicesPro = &board{12, 4, "nvidia-smi mig -lgipp and -lgip on real cards", []shape{
	{1, 3, []int{0, 3, 6, 9}, 4}, // 1g
	{1, 3, []int{0, 3, 6, 9}, 1}, // 1g+me
	{1, 3, []int{0, 3, 6, 9}, 4}, // 1g+gfx
	{1, 3, []int{0, 3, 6, 9}, 1}, // 1g+me.all
	{1, 3, []int{0, 3, 6, 9}, 4}, // 1g-me
	{2, 6, []int{0, 6}, 2},       // 2g
	{2, 6, []int{0, 6}, 2},       // 2g+gfx
	{2, 6, []int{0, 6}, 1},       // 2g+me.all
	{2, 6, []int{0, 6}, 2},       // 2g-me
	{4, 12, []int{0}, 1},         // 4g
	{4, 12, []int{0}, 1},         // 4g+gfx
}}

// twoSlices describes the RTX PRO 5000, and twoSlicesSmall the RTX PRO 4500, which has no 1g+me. Their counts are
// published, but not their starts. Here one unit is half a card: 2g has all of the memory and 1g has half of it. The
// same sets of instances fit, whatever units the card uses.
var twoSlices = &board{2, 2, "MUG: counts", []shape{
	{1, 1, []int{0, 1}, 2}, // 1g
	{1, 1, []int{0, 1}, 1}, // 1g+me
	{1, 1, []int{0, 1}, 2}, // 1g+gfx
	{1, 1, []int{0, 1}, 1}, // 1g+me.all
	{1, 1, []int{0, 1}, 2}, // 1g-me
	{2, 2, []int{0}, 1},    // 2g
	{2, 2, []int{0}, 1},    // 2g+gfx
}}

var twoSlicesSmall = &board{2, 2, "MUG: counts", []shape{
	{1, 1, []int{0, 1}, 2}, // 1g
	{1, 1, []int{0, 1}, 2}, // 1g+gfx
	{1, 1, []int{0, 1}, 1}, // 1g+me.all
	{1, 1, []int{0, 1}, 2}, // 1g-me
	{2, 2, []int{0}, 1},    // 2g
	{2, 2, []int{0}, 1},    // 2g+gfx
}}

// productTable has one row for each product, with one row for each of its profiles, in the order of the board's shapes:
// the name, and the memory of an instance; 0 means that no source documents it. Memory is from real cards, and is the
// minimum if drivers differ. Values that were published in GiB with two decimal places are exact to a few MiB.
var productTable = []struct {
	name     string
	gb       int
	board    *board
	source   string
	profiles []profileRow
}{
	{"A30", 24, fourSlices, "MUG; nvidia-smi mig -lgip on a card", []profileRow{
		{"1g.6gb", 5949}, {"1g.6gb+me", 5949}, {"2g.12gb", 11970}, {"2g.12gb+me", 11970},
		{"4g.24gb", 24002},
	}},
	{"A100 40GB", 40, sevenSlices, "MUG; node labels; 1g.10gb and +me need driver R525 and R470", []profileRow{
		{"1g.5gb", 4864}, {"1g.5gb+me", 4864}, {"1g.10gb", 9856}, {"2g.10gb", 9856},
		{"3g.20gb", 19968}, {"4g.20gb", 19968}, {"7g.40gb", 40192},
	}},
	{"A100 80GB", 80, sevenSlices, "MUG; nvidia-smi mig -lgip on a card", []profileRow{
		{"1g.10gb", 9728}, {"1g.10gb+me", 9728}, {"1g.20gb", 19968}, {"2g.20gb", 19968},
		{"3g.40gb", 40192}, {"4g.40gb", 40192}, {"7g.80gb", 80384},
	}},
	{"H100 80GB", 80, sevenSlices, "MUG; node labels", []profileRow{
		{"1g.10gb", 9984}, {"1g.10gb+me", 9984}, {"1g.20gb", 20096}, {"2g.20gb", 20096},
		{"3g.40gb", 40320}, {"4g.40gb", 40320}, {"7g.80gb", 81152},
	}},
	{"H100 94GB", 94, sevenSlices, "MUG; nvidia-smi mig -lgip on an H100 NVL", []profileRow{
		{"1g.12gb", 11008}, {"1g.12gb+me", 11008}, {"1g.24gb", 22138}, {"2g.24gb", 22138},
		{"3g.47gb", 47493}, {"4g.47gb", 47493}, {"7g.94gb", 0},
	}},
	{"H100 96GB", 96, sevenSlices, "MUG; nvidia-smi mig -lgip on a GH200", []profileRow{
		{"1g.12gb", 11264}, {"1g.12gb+me", 11264}, {"1g.24gb", 23552}, {"2g.24gb", 23552},
		{"3g.48gb", 47616}, {"4g.48gb", 47616}, {"7g.96gb", 95232},
	}},
	{"H20 96GB", 96, sevenSlices, "MUG; memory as on the GH200 with 96 GB", []profileRow{
		{"1g.12gb", 11264}, {"1g.12gb+me", 11264}, {"1g.24gb", 23552}, {"2g.24gb", 23552},
		{"3g.48gb", 47616}, {"4g.48gb", 47616}, {"7g.96gb", 95232},
	}},
	{"GH200 144GB", 144, sevenSlices, "mig-parted; memory in part from a card", []profileRow{
		{"1g.18gb", 17920}, {"1g.18gb+me", 17920}, {"1g.36gb", 36096}, {"2g.36gb", 36096},
		{"3g.72gb", 0}, {"4g.72gb", 0}, {"7g.144gb", 0},
	}},
	{"H200", 141, sevenSlices, "MUG; nvidia-smi mig -lgip on a card", []profileRow{
		{"1g.18gb", 16384}, {"1g.18gb+me", 16384}, {"1g.35gb", 33024}, {"2g.35gb", 33024},
		{"3g.71gb", 71168}, {"4g.71gb", 71168}, {"7g.141gb", 143360},
	}},
	{"H20 141GB", 141, sevenSlices, "MUG; as the H200", []profileRow{
		{"1g.18gb", 16384}, {"1g.18gb+me", 16384}, {"1g.35gb", 33024}, {"2g.35gb", 33024},
		{"3g.71gb", 71168}, {"4g.71gb", 71168}, {"7g.141gb", 143360},
	}},
	{"B200", 180, sevenSlices, "MUG; nvidia-smi mig -lgip on a card", []profileRow{
		{"1g.23gb", 20992}, {"1g.23gb+me", 20992}, {"1g.45gb", 45312}, {"2g.45gb", 45312},
		{"3g.90gb", 91136}, {"4g.90gb", 91136}, {"7g.180gb", 182784},
	}},
	{"GB200", 186, sevenSlices,
		"mig-parted; memory from a card; older drivers name 1g.24gb, 3g.95gb, 4g.95gb and 7g.189gb", []profileRow{
			{"1g.23gb", 20480}, {"1g.23gb+me", 20480}, {"1g.47gb", 46592}, {"2g.47gb", 46592},
			{"3g.93gb", 0}, {"4g.93gb", 0}, {"7g.186gb", 0},
		}},
	{"B300", 269, sevenSlices, "mig-parted", []profileRow{
		{"1g.34gb", 0}, {"1g.34gb+me", 0}, {"1g.67gb", 0}, {"2g.67gb", 0}, {"3g.135gb", 0},
		{"4g.135gb", 0}, {"7g.269gb", 0},
	}},
	{"GB300", 278, sevenSlices, "mig-parted", []profileRow{
		{"1g.35gb", 0}, {"1g.35gb+me", 0}, {"1g.70gb", 0}, {"2g.70gb", 0}, {"3g.139gb", 0},
		{"4g.139gb", 0}, {"7g.278gb", 0},
	}},
	{"RTX PRO 6000", 96, fourSlicesPro, "MUG; nvidia-smi mig -lgip on a card", []profileRow{
		{"1g.24gb", 23674}, {"1g.24gb+me", 23674}, {"1g.24gb+gfx", 23674}, {"1g.24gb+me.all", 23674},
		{"1g.24gb-me", 23674}, {"2g.48gb", 48517}, {"2g.48gb+gfx", 48517}, {"2g.48gb+me.all", 48517},
		{"2g.48gb-me", 48517}, {"4g.96gb", 97280}, {"4g.96gb+gfx", 97280},
	}},
	{"RTX PRO 5000", 48, twoSlices, "MUG: names and counts", []profileRow{
		{"1g.24gb", 0}, {"1g.24gb+me", 0}, {"1g.24gb+gfx", 0}, {"1g.24gb+me.all", 0}, {"1g.24gb-me", 0},
		{"2g.48gb", 0}, {"2g.48gb+gfx", 0},
	}},
	{"RTX PRO 4500", 32, twoSlicesSmall, "MUG: names and counts", []profileRow{
		{"1g.16gb", 0}, {"1g.16gb+gfx", 0}, {"1g.16gb+me.all", 0}, {"1g.16gb-me", 0},
		{"2g.32gb", 0}, {"2g.32gb+gfx", 0},
	}},
}

// profileRow is one profile of a product.
type profileRow struct {
	name   string
	memory MiB
}
