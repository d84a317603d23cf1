from tests.training.support import train as train
