package hint

// Name is what the library calls something that a hint is about: a field of
// options, or a function.
type Name string

// The names that hints have.
const (
	Copy  Name = "client.Client.Copy"
	Login Name = "registry.Client.Login"
	Pack  Name = "pack.Open"
	Pull  Name = "client.Client.Pull"
	Push  Name = "client.Client.Push"
	// Verify names what tells all findings.
	Verify Name = "carton.Verify"
	Delete Name = "client.Client.Delete"
	Tags   Name = "client.Client.Tags"

	Plain Name = "client.OpenOptions.Plain"
	Shard Name = "pack.Options.Shard"

	AllowLinkHosts Name = "client.Options.AllowLinkHosts"
	AllowLinkRepos Name = "client.Options.AllowLinkRepos"

	CAFile         Name = "registry.Options.CAFile"
	Insecure       Name = "registry.Options.Insecure"
	PlainHTTP      Name = "registry.Options.PlainHTTP"
	RegistryConfig Name = "registry.DockerCredentials" // the file that it is given

	Exclude   Name = "client.PullOptions.Exclude"
	Force     Name = "client.PullOptions.Force"
	LinkBase  Name = "client.PullOptions.LinkBase"
	Output    Name = "client.PullOptions.Output"
	OutputDir Name = "client.PullOptions.OutputDir"
	Thin      Name = "client.PullOptions.Thin"
	Unpack    Name = "client.PullOptions.Unpack"
	Wrap      Name = "client.PullOptions.Wrap"
	// Signature is a field of several.
	Signature Name = "client.OpenOptions.Signature"

	SignOutput Name = "client.SignOptions.Output"
	// Concurrency is a field of several.
	Concurrency Name = "client.PushOptions.Concurrency"

	DeleteTagged Name = "client.DeleteOptions.Tagged"

	ImageTag   Name = "client.PushOptions.ImageTag"
	LeaveImage Name = "client.PushOptions.LeaveImage"
	NoClobber  Name = "client.PushOptions.NoClobber"

	// Recursive takes along what belongs to what is copied.
	Recursive Name = "client.CopyOptions.Recursive"

	AllowInvalid Name = "convert.Options.AllowInvalid"
	BundleBelow  Name = "convert.Options.BundleBelow"
	Compat       Name = "convert.Options.Compat"
	Image        Name = "convert.Options.Image"
	Layers       Name = "convert.Options.Layers"
	Readme       Name = "convert.Options.Readme"

	Member Name = "inspect.Options.Member"
	Model  Name = "inspect.Options.Model"

	PackExclude Name = "pack.Options.Exclude"
	PackInclude Name = "pack.Options.Include"
	PackInvalid Name = "pack.Options.AllowInvalid"
	Update      Name = "pack.Options.Update"

	FrameworkVersion Name = "carton.Runner.RequiredFrameworkVersion"
	Runner           Name = "carton.Runner.Name"
	RunnerOpts       Name = "carton.Runner.Opts"
)
