python train.py model=resnet trainer.amp=true +model.act.inplace=true \
  optimizer.lr=3e-4 "tags=[a,b]"
