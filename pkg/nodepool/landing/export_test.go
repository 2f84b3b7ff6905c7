package landing

// Constrain is constrain, for the tests outside of the package.
var Constrain = constrain
