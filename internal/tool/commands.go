package tool

import "sync"

//go:generate go test -run TestPages . -update

// Commands returns all commands, in the order of the help.
var Commands = sync.OnceValue(func() []*Command {
	return []*Command{
		topicsCommand(),
		getOffsetsCommand(),
		consoleProducerCommand(),
		consoleConsumerCommand(),
		configsCommand(),
		consumerGroupsCommand(),
		transactionsCommand(),
		deleteRecordsCommand(),
		leaderElectionCommand(),
		reassignPartitionsCommand(),
		producerPerfCommand(),
		consumerPerfCommand(),
		zookeeperShellCommand(),
		dumpLogCommand(),
		checkLogCommand(),
		offsetCheckerCommand(),
		whyCommand(),
	}
})
