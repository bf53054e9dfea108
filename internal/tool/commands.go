package tool

import "sync"

// Commands returns all commands, in the order of the help.
var Commands = sync.OnceValue(func() []*Command {
	return []*Command{
		topicsCommand(),
		getOffsetsCommand(),
		consoleProducerCommand(),
		consoleConsumerCommand(),
		configsCommand(),
		deleteRecordsCommand(),
	}
})
